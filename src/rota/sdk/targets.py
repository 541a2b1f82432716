"""The target of a job that has no function: a command or an HTTP request, as data, with a stand-in for its function.

Apps, job files and the HTTP API build the same target from the same options.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from rota.executors import kinds
from rota.sdk import declaration
from rota.sdk.stand_in import Plain, stand_in

Made = tuple[Callable[..., Any], dict[str, Any]]
"""The stand-in, which has the parameters of the job, and the target."""


def command(name: str, argv: Any, about: dict[str, Any]) -> Made:
    """Takes the options of a command out of `about`."""
    from rota.executors.process.command import Command, lists, parameters  # lazy: few apps have commands

    given = {"argv": declaration.words(argv, name)}
    made = declaration.executor_data(about, Command, given, name, "a command")
    takes = {one: list[Plain] if one in lists(made) else Plain for one in parameters(made)}
    return stand_in(name, takes, "a command"), {"kind": kinds.COMMAND, **msgspec.to_builtins(made)}


def http(name: str, url: Any, about: dict[str, Any]) -> Made:
    """Takes the options of a request out of `about`."""
    from rota.executors.http.request import Request, parameters, values  # lazy: needs an extra

    request = declaration.executor_data(about, Request, {"url": url}, name, "a request")
    takes = {one: Any if one in values(request) else Plain for one in parameters(request)}
    sends_all = request.body == "arguments" and request.method not in ("GET", "HEAD", "DELETE")
    function = stand_in(name, takes, "an HTTP request", takes_others=sends_all)
    return function, {"kind": kinds.HTTP, **msgspec.to_builtins(request)}
