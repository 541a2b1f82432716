"""Which executor runs a job: by the kind that its definition names. Others can add kinds by entry points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Any

import msgspec

from rota.domain.errors import DefinitionError
from rota.domain.lifecycle import Rules
from rota.executors.port import Executor
from rota.executors.third_party import ThirdParty

GROUP = "rota.executors"
COMMAND, HTTP, PROCESS = "command", "http", "process"

Factory = Callable[[Mapping[str, Any], Rules], Executor]
"""Makes the executor of one job from what its definition says, without the kind."""


def executor(target: Mapping[str, Any], rules: Rules) -> Executor:
    """The executor for a job whose definition has this target. Refuses one that cannot be meant."""
    data = {name: value for name, value in target.items() if name != "kind"}
    try:
        return _factory(str(target["kind"]))(data, rules)
    except msgspec.ValidationError as error:
        raise DefinitionError(f"{target['kind']}: {error}") from None


def _factory(kind: str) -> Factory:
    match kind:
        case "command":
            return _command
        case "http":
            return _http
        case _:
            added = _added(kind)
            return lambda data, rules: ThirdParty(added(data, rules), kind)


def _command(data: Mapping[str, Any], rules: Rules) -> Executor:
    from rota.executors.process.command import (  # lazy: few apps have commands
        Command,
        CommandExecutor,
        shared_processes,
    )

    return CommandExecutor(msgspec.convert(dict(data), Command), rules, processes=shared_processes())


def _http(data: Mapping[str, Any], rules: Rules) -> Executor:
    from rota.executors.http.request import HttpExecutor, Request  # lazy: needs an extra

    return HttpExecutor(msgspec.convert(dict(data), Request), rules)


def _added(kind: str) -> Callable[[Mapping[str, Any], Rules], Any]:
    found = [point for point in metadata.entry_points(group=GROUP) if point.name == kind]
    if not found:
        known = sorted({COMMAND, HTTP, *(point.name for point in metadata.entry_points(group=GROUP))})
        raise DefinitionError(f"there is no executor {kind!r}: it may be {', '.join(known)}, or one that you install")
    factory: Callable[[Mapping[str, Any], Rules], Any] = found[0].load()
    return factory
