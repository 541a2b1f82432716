"""Which executor runs a job: by the kind that its definition names. Others can add kinds by entry points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from rota.domain.errors import DefinitionError
from rota.domain.lifecycle import Rules
from rota.executors.port import Executor
from rota.executors.third_party import ThirdParty

GROUP = "rota.executors"
COMMAND, HTTP, PROCESS = "command", "http", "process"
FUNCTION = "function"
"""A job as data that runs the function of another job."""
WORKFLOW = "workflow"
"""No executor runs it: a claim opens a run."""


def executor(target: Mapping[str, Any], rules: Rules, max_result_bytes: int) -> Executor:
    """The executor for a job whose definition has this target. Refuses data that does not fit its kind."""
    kind, data = str(target["kind"]), {name: value for name, value in target.items() if name != "kind"}
    try:
        match kind:
            case "command":
                from rota.executors.process import command  # lazy: few apps have commands

                about, processes = msgspec.convert(data, command.Command), command.shared_processes()
                return command.CommandExecutor(about, rules, max_result_bytes=max_result_bytes, processes=processes)
            case "http" if "callback_of" in data:
                from rota.executors.http.callback import CallbackExecutor, CallbackJob  # lazy: needs an extra

                return CallbackExecutor(msgspec.convert(data, CallbackJob), rules, max_result_bytes=max_result_bytes)
            case "http":
                from rota.executors.http.request import HttpExecutor, Request  # lazy: needs an extra

                return HttpExecutor(msgspec.convert(data, Request), rules, max_result_bytes=max_result_bytes)
            case _:
                return ThirdParty(_added(kind)(data, rules), kind, max_result_bytes=max_result_bytes)
    except msgspec.ValidationError as error:
        raise DefinitionError(f"{kind}: {error}") from None


def _added(kind: str) -> Callable[[Mapping[str, Any], Rules], Any]:
    """The factory of a third party: makes the executor of one job from its target, without the kind, and its rules."""
    from importlib import metadata  # lazy: few apps have such kinds, and it imports a parser of e-mail

    found = [point for point in metadata.entry_points(group=GROUP) if point.name == kind]
    if not found:
        known = sorted({COMMAND, HTTP, *(point.name for point in metadata.entry_points(group=GROUP))})
        raise DefinitionError(f"there is no executor {kind!r}: it may be {', '.join(known)}, or one that you install")
    factory: Callable[[Mapping[str, Any], Rules], Any] = found[0].load()
    return factory
