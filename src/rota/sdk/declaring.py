"""What a declaration of a job says, checked and put into the words of its definition."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import msgspec

from rota.domain import retry
from rota.domain.breaker import Breaker
from rota.domain.duration import Duration, positive_seconds, seconds
from rota.domain.errors import DefinitionError
from rota.domain.lifecycle import Rules
from rota.domain.requirement import Needs, needs
from rota.domain.size import Size, size
from rota.executors import kinds
from rota.executors.signature import Signature

DEFAULT_TIMEOUT = "1h"
MOST_FAILURES = 100


def rules(options: Mapping[str, Any], relies_on: tuple[Breaker, ...] = ()) -> Rules:
    timeout, total = options.get("timeout", DEFAULT_TIMEOUT), options.get("total_timeout")
    silence, turn = options.get("progress_timeout"), options.get("time_slice")
    return Rules(
        retry=retry.policy(options.get("retry", True)),
        timeout_s=None if timeout is None else positive_seconds(timeout, "timeout"),
        total_timeout_s=None if total is None else positive_seconds(total, "total_timeout"),
        progress_timeout_s=None if silence is None else positive_seconds(silence, "progress_timeout"),
        slice_s=None if turn is None else positive_seconds(turn, "time_slice"),
        breakers=relies_on,
        pauses=options.get("pause_after") is not None,
    )


def named(given: Any, what: str) -> list[Any]:
    """One name, or several."""
    if isinstance(given, str):
        return [given]
    if isinstance(given, Iterable):
        return list(given)
    raise DefinitionError(f"{what} must be a name or a list of names, not {given!r}")


def by_name(given: Any, what: str, such_as: str) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise DefinitionError(f"{what}: must be a dict, such as {such_as}, not {str(given)[:64]!r}")
    return given


def wanted(options: Mapping[str, Any], relies_on: Sequence[Breaker], kind: str | None) -> Needs:
    """What a job needs of the worker that takes it."""
    found = needs(
        options.get("pool"),
        _tags(options.get("requires", ())),
        by_name(options.get("resources"), "resources", "{'gpu': 1}"),
        [breaker.name for breaker in relies_on],
        options.get("affinity"),
        options.get("affinity_wait"),
    )
    return msgspec.structs.replace(found, isolated=kind == kinds.PROCESS, command=kind == kinds.COMMAND)


def _tags(given: Any) -> Any:
    """One text alone is refused where tags are checked: it looks like a list, and is one of letters."""
    return given if isinstance(given, str) else named(given, "requires")


def check_affinity(argument: str | None, signature: Signature, job: str) -> None:
    if argument is not None and not (isinstance(argument, str) and argument.isidentifier()):
        raise DefinitionError(f"job {job!r}: affinity must be the name of an argument, not {argument!r}")
    if argument is not None and not signature.takes(argument):
        raise DefinitionError(f"job {job!r}: affinity={argument!r}, but it has no argument of that name")


def pause_after(number: int | None) -> int | None:
    is_number = isinstance(number, int) and not isinstance(number, bool)
    if number is not None and not (is_number and 0 < number <= MOST_FAILURES):
        raise DefinitionError(f"pause_after must be a number of executions from 1 to {MOST_FAILURES}, not {number!r}")
    return number


def words(argv: Any, job: str) -> list[Any]:
    """The words of a command, each for itself: nobody takes a text apart but a shell."""
    if isinstance(argv, str | bytes) or not isinstance(argv, Sequence):
        raise DefinitionError(
            f"job {job!r}: a command is a list of texts, such as ['echo', 'hi'], not {str(argv)[:64]!r}; "
            "where you want a shell, name it: ['sh', '-c', '…']"
        )
    return list(argv)


def check_silent(options: Mapping[str, Any], what: str, job: str) -> None:
    """Refuses what is only for jobs that can tell something while they run."""
    for name, means in (("progress_timeout", "ctx.progress"), ("time_slice", "ctx.checkpoint")):
        if options.get(name) is not None:
            raise DefinitionError(
                f"job {job!r}: {name} is for a function that calls {means}, which {what} cannot; use timeout="
            )


def check_breakers(relied_on: Mapping[str, Sequence[str]], declared: Collection[str]) -> None:
    """Refuses names that nobody has declared, which are mostly misspelt; `relied_on` is by job."""
    for job, breakers in relied_on.items():
        for name in breakers:
            if name not in declared:
                near = get_close_matches(name, declared, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"say app.breaker({name!r}), or [breakers.{name}]"
                raise DefinitionError(f"job {job!r} relies on a breaker {name!r}, which is not declared: {hint}")


def isolated(isolation: str | None, memory: Size | None, grace: Duration | None) -> dict[str, Any]:
    """What a definition says of a function that has a process of its own; nothing for any other."""
    if isolation not in (None, kinds.PROCESS):
        raise DefinitionError(f"isolation must be 'process' or left out, not {isolation!r}")
    if isolation is None:
        if memory is not None or grace is not None:
            raise DefinitionError("memory and grace are for a process: add isolation='process'")
        return {}
    target: dict[str, Any] = {"kind": kinds.PROCESS}
    if memory is not None:
        target["memory_bytes"] = size(memory, "memory")
    if grace is not None:
        target["grace_s"] = seconds(grace, "grace")
    return target


def renamed(about: dict[str, Any], names: Mapping[str, str], kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Takes out of `about` what belongs to the executor, under the names that this has for it."""
    if "memory" in about:
        about["memory_bytes"] = size(about.pop("memory"), "memory")
    if "grace" in about:
        about["grace_s"] = seconds(about.pop("grace"), "grace")
    own = [field for field in kind.__struct_fields__ if field not in names.values()]
    data = {field: about.pop(field) for field in own if field in about}
    return data | {field: about.pop(said) for said, field in names.items() if said in about}
