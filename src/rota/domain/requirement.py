"""The needs of a job and the offers of a worker. A worker takes only executions whose needs fit its offers.

Pools divide the workers: a worker serves the pool `default` unless it names others, and a job belongs to `default`
unless it names another. A worker must have all tags of a job. Resources are amounts, such as one of two graphics cards:
the executions that a process runs at once stay within them.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from functools import lru_cache

import msgspec

from rota.domain import names
from rota.domain.duration import Duration, seconds
from rota.domain.errors import DefinitionError
from rota.domain.size import size

DEFAULT_POOL = "default"
DEFAULT_POOLS = (DEFAULT_POOL,)
MOST = 20
ISOLATED, COMMANDS = "isolated jobs", "commands"
"""The two purposes for which a worker starts processes; also keys in its `trouble`."""
STANDS_STILL = "stands still"
"""The key in a worker's `trouble` for a process that the kernel does not run."""
AFFINITY_WAIT_S = 5.0
MOST_AFFINITY_WAIT_S = 3600.0


class Needs(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The needs of a job. Their text, which is empty for a job without needs, is part of the identity of a lane."""

    pool: str = DEFAULT_POOL
    tags: list[str] = []
    resources: dict[str, float] = {}
    breakers: list[str] = []
    """The job does not start while one of these is open."""
    affinity: str = ""
    """The argument by whose value an execution prefers the worker that last ran the same value."""
    affinity_wait_s: float = AFFINITY_WAIT_S
    isolated: bool = False
    """Whether it runs in a process of its own: a worker takes only as many as it has processes for."""
    command: bool = False
    """Whether it is a command: a worker that cannot start processes takes none."""
    workflow: bool = False
    """Whether it is a workflow: a claim opens it as a run, and starts nothing."""


class Offers(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The offers of a worker process."""

    pools: tuple[str, ...] = DEFAULT_POOLS
    tags: list[str] = []
    resources: dict[str, float] = {}
    everything: bool = False
    """Whether it takes every job, as `rota dev` does."""


class Room(msgspec.Struct, frozen=True, array_like=True):
    """How many more processes a worker can start for each purpose; None if nothing bounds them."""

    isolated: int | None = None
    commands: int | None = None


UNBOUNDED = Room()
WORKFLOW = '{"workflow":true}'
"""The text of the needs of every workflow."""
_decode_needs = msgspec.json.Decoder(Needs).decode
decode_offers = msgspec.json.Decoder(Offers).decode


def needs(
    pool: str | None,
    tags: Sequence[str],
    resources: Mapping[str, float | str],
    breakers: Sequence[str] = (),
    affinity: str | None = None,
    affinity_wait: Duration | None = None,
) -> Needs:
    """The checked needs that a job declares."""
    if affinity_wait is not None and affinity is None:
        raise DefinitionError("affinity_wait is for a job with affinity=")
    wait_s = AFFINITY_WAIT_S if affinity_wait is None else seconds(affinity_wait, "affinity_wait")
    if wait_s > MOST_AFFINITY_WAIT_S:
        raise DefinitionError(f"affinity_wait must be an hour at most, not {affinity_wait!r}")
    return Needs(
        # msgspec leaves out a default text only if it is this very object.
        pool=DEFAULT_POOL if pool in (None, DEFAULT_POOL) else names.check(pool, "a pool's name"),
        tags=_tags(tags),
        resources=amounts(resources),
        breakers=sorted(set(breakers)),
        affinity=affinity or "",
        affinity_wait_s=wait_s,
    )


def offers(pools: Sequence[str], tags: Sequence[str], resources: Mapping[str, float | str]) -> Offers:
    """The checked offers that a worker is started with."""
    named = tuple(sorted({names.check(pool, "a pool's name") for pool in pools}))
    if named in ((), DEFAULT_POOLS):
        # msgspec leaves out only the default object itself, and the fast path of claims needs the text of the defaults.
        named = DEFAULT_POOLS
    return Offers(pools=named, tags=_tags(tags), resources=amounts(resources))


def amounts(resources: Mapping[str, float | str]) -> dict[str, float]:
    """The amounts of resources, sorted by name; a text is a size, such as "2GB"."""
    if len(resources) > MOST:
        raise DefinitionError(f"resources: at most {MOST}, not {len(resources)}")
    return {names.check(name, "a resource's name"): _amount(name, resources[name]) for name in sorted(resources)}


def written(wanted: Needs) -> str:
    """The text of a job's needs; empty if there are none."""
    text = msgspec.json.encode(wanted, order="sorted").decode()
    return "" if text == "{}" else text


def encode(given: Offers) -> str:
    return msgspec.json.encode(given, order="sorted").decode()


@lru_cache(maxsize=4096)
def decode(requirements: str) -> Needs:
    return _decode_needs(requirements) if requirements else Needs()


@lru_cache(maxsize=4096)
def most(requirements: str, offered: str, used: tuple[tuple[str, float], ...] = ()) -> int | None:
    """How many executions with these requirements a worker can take; None if nothing but its slots bounds them."""
    wanted, given = decode(requirements), decode_offers(offered)
    if given.everything:
        return None
    if wanted.pool not in given.pools or not set(wanted.tags) <= set(given.tags):
        return 0
    taken = dict(used)
    counts = [
        int((given.resources.get(name, 0.0) - taken.get(name, 0.0) + 1e-9) // amount)
        for name, amount in wanted.resources.items()
        if amount > 0
    ]
    return max(0, min(counts)) if counts else None


def fits(requirements: str, offered: str) -> bool:
    """Whether a worker that runs nothing else could take it."""
    return most(requirements, offered) != 0


def used(running: Sequence[tuple[str, int]]) -> tuple[tuple[str, float], ...]:
    """The resources that executions use together. Each pair is requirements, and how many executions have them."""
    total: dict[str, float] = {}
    for requirements, count in running:
        for name, amount in decode(requirements).resources.items():
            total[name] = total.get(name, 0.0) + amount * count
    return tuple(sorted(total.items()))


def breakers(requirements: str) -> list[str]:
    return decode(requirements).breakers


def affinity(requirements: str) -> tuple[str, float] | None:
    """The argument whose value prefers a worker, and for how many seconds; None if there is none."""
    wanted = decode(requirements)
    return (wanted.affinity, wanted.affinity_wait_s) if wanted.affinity else None


def within(requirements: str, room: Room) -> int | None:
    """How many processes can be started for executions with these requirements; None if nothing bounds them."""
    wanted = decode(requirements)
    return room.isolated if wanted.isolated else room.commands if wanted.command else None


def processes(requirements: str) -> str:
    """The purpose of the process that the job needs; empty if it needs none."""
    wanted = decode(requirements)
    return ISOLATED if wanted.isolated else COMMANDS if wanted.command else ""


def can_start(requirements: str, trouble: Container[str]) -> bool:
    """Whether a worker with this trouble can start the process that the job needs, if it needs one."""
    purpose = processes(requirements)
    return STANDS_STILL not in trouble and not (purpose and purpose in trouble)


def is_workflow(requirements: str) -> bool:
    return decode(requirements).workflow


def compete(one: str, other: str) -> bool:
    """Whether two jobs need some of the same resource."""
    return not decode(one).resources.keys().isdisjoint(decode(other).resources)


def words(requirements: str) -> str:
    """The needs, for people."""
    wanted = decode(requirements)
    parts = [f"pool {wanted.pool}"] if wanted.pool != DEFAULT_POOL else []
    parts += [f"tag {tag}" for tag in wanted.tags]
    parts += [f"{amount:g} {name}" for name, amount in wanted.resources.items()]
    return ", ".join(parts)


def offered(given: Offers) -> str:
    """The offers, for people; empty for the defaults."""
    if given.everything:
        return "everything"
    parts = [f"pool {pool}" for pool in given.pools] if given.pools != DEFAULT_POOLS else []
    return ", ".join([*parts, *given.tags, *(f"{amount:g} {name}" for name, amount in given.resources.items())])


def _tags(tags: Sequence[str]) -> list[str]:
    if isinstance(tags, str):
        raise DefinitionError(f"tags must be a list of names, such as [{tags[:64]!r}], not one text")
    if len(tags) > MOST:
        raise DefinitionError(f"tags: at most {MOST}, not {len(tags)}")
    return sorted({names.check(tag, "a worker's tag") for tag in tags})


def _amount(name: str, value: float | str) -> float:
    if isinstance(value, str):
        return float(size(value, f"resource {name}"))
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**60:
        raise DefinitionError(f"resource {name}: must be an amount, such as 1 or '2GB', not {value!r}")
    return float(value)
