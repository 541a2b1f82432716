"""What clients may want, drawn from a seed: every way to enqueue, of every job."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec

from rota.domain.instant import MICROSECONDS
from rota.domain.unique import OnConflict, Unique
from rota.ops.submission import Header
from tests.simulation.bodies import GARBAGE
from tests.simulation.child import APP, NAMESPACE

QUEUES = ("default", "line", "tight")
PAUSED_JOBS = ("flaky", "steady", "long")
"""Jobs that clients pause: those that are asked for most, and the one whose retries are debounced."""
DEPTHS = {"tight": 3}
MOST_IN_BULK = 6


def job_and_arguments(entropy: Random, kills: bool) -> tuple[str, str]:
    """A job and arguments for it; now and then some that it cannot be called with."""
    draw = entropy.uniform
    choices: list[tuple[str, int, dict[str, Any]]] = [
        ("steady", 12, {"seconds": draw(0, 2), "tag": entropy.randint(0, 3)}),
        ("flaky", 5, {"failures": entropy.randint(1, 5), "seconds": draw(0, 0.5)}),
        ("doomed", 2, {"tag": entropy.randint(0, 9)}),
        ("hopeless", 1, {}),
        ("once", 2, {"fails": entropy.random() < 0.5}),
        ("asked", 2, {"failures": entropy.randint(1, 4)}),
        ("steered", 4, {"signal": entropy.choice(["retry", "snooze", "fail"]), "seconds": draw(0.1, 2)}),
        ("slow", 2, {"slow_starts": entropy.randint(1, 3)}),
        ("tardy", 2, {"seconds": draw(0.1, 4)}),
        ("deaf", 3, {"seconds": draw(1, 4)}),
        ("long", 6, {"seconds": draw(2, 9)}),
        ("garbage", 2, {"kind": entropy.choice(sorted(GARBAGE))}),
        ("newborn", 2, {}),
        ("poison", 2 if kills else 0, {"kills": entropy.randint(1, 4)}),
        ("steady", 1, {"nonsense": True}),
    ]
    weights = [weight for _, weight, _ in choices]
    job, _, arguments = entropy.choices(choices, weights)[0]
    return job, msgspec.json.encode(arguments).decode()


def header(entropy: Random, job: str, now: int) -> Header:
    """How to enqueue: one of the many ways."""
    return Header(
        namespace=NAMESPACE,
        app=APP,
        job=job,
        queue=entropy.choice(QUEUES),
        actor="client",
        priority=entropy.choice([0, 0, 0, 10, -10, 1]),
        **_when(entropy, now),
        **_deadline(entropy, now),
        **_keys(entropy),
    )


def burst(entropy: Random) -> tuple[Header, str]:
    """One of many calls that debounce each other, of a job that fails now and then: retries are pushed back too."""
    once = Unique(key="burst", scope="active", on_conflict="debounce")
    delay_s = entropy.choice([0.0, entropy.uniform(0, 0.5)])
    wanted = Header(namespace=NAMESPACE, app=APP, job="flaky", queue="default", delay_s=delay_s, unique=once)
    return wanted, msgspec.json.encode({"failures": entropy.randint(2, 4)}).decode()


def single(entropy: Random) -> tuple[Header, str]:
    """One of several that may not run beside each other, and that take a while."""
    action = entropy.choice(list(OnConflict)).value
    once = Unique(key="single", scope="active", on_conflict=action)
    wanted = Header(namespace=NAMESPACE, app=APP, job="long", queue="line", priority=10, unique=once)
    return wanted, msgspec.json.encode({"seconds": entropy.uniform(1, 4)}).decode()


def keyed(entropy: Random) -> tuple[Header, str]:
    """One of several with the same key, most of them with the same arguments."""
    key = f"order {entropy.randint(1, 3)}"
    wanted = Header(namespace=NAMESPACE, app=APP, job="steady", queue="tight", key=key)
    return wanted, msgspec.json.encode({"tag": int(entropy.random() < 0.2)}).decode()


def calm(entropy: Random) -> tuple[Header, str]:
    """Plain work, long or short, urgent or not: the more urgent overtakes what claimers have passed."""
    priority = entropy.choice([0, 0, 10, -10])
    job, seconds = entropy.choice([("steady", entropy.uniform(0, 1)), ("long", entropy.uniform(2, 4))])
    wanted = Header(namespace=NAMESPACE, app=APP, job=job, queue=entropy.choice(QUEUES[:2]), priority=priority)
    return wanted, msgspec.json.encode({"seconds": seconds}).decode()


def _when(entropy: Random, now: int) -> dict[str, Any]:
    match entropy.randrange(6):
        case 0 | 1:
            return {"delay_s": entropy.uniform(0.05, 5)}
        case 2:
            return {"at": now + round(entropy.uniform(-2, 5) * MICROSECONDS)}
        case _:
            return {}


def _deadline(entropy: Random, now: int) -> dict[str, Any]:
    match entropy.randrange(8):
        case 0 | 1:
            return {"start_within_s": entropy.uniform(0.01, 3)}
        case 2:
            return {"start_by": now + round(entropy.uniform(-0.2, 6) * MICROSECONDS)}
        case _:
            return {}


def _keys(entropy: Random) -> dict[str, Any]:
    scopes: list[str | float] = ["queued", "active", "active", "forever", entropy.uniform(0.5, 10)]
    match entropy.randrange(6):
        case 0:
            return {"key": f"key {entropy.randint(1, 5)}"}
        case 1 | 2:
            action = entropy.choice(list(OnConflict)).value
            key = entropy.choice([None, "one", "two"])
            return {"unique": Unique(key=key, scope=entropy.choice(scopes), on_conflict=action)}
        case _:
            return {}
