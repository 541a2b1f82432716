"""What runs a job that the API defines: a command, an HTTP request, or the function of a job of an app.

Such a definition is stored as it is, shown to readers, and run by workers of the namespace. So it holds no literal
secrets, and references lead only to what a worker offers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from rota.api.job_body import HttpTarget, JobBody
from rota.api.problem import Problem, bad_member
from rota.domain import command_line, masking
from rota.domain.access import Scope
from rota.domain.errors import DefinitionError, UsageError
from rota.domain.job import Definition
from rota.executors import kinds
from rota.sdk import targets
from rota.sdk.stand_in import stand_in
from rota.store import definition_reader as reader
from rota.store.port import View

_STEERING = re.compile(
    r"LD_.*|DYLD_.*|PYTHON.*|BASH_ENV|ENV|IFS|PS4|SHELLOPTS|BASHOPTS|PERL5.*|PERLLIB|RUBY.*|NODE_OPTIONS|"
    r"GIT_.*|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|ROTA_.*",
    re.IGNORECASE,
)
"""Variables that make a program load other code, or are Rota's own."""
OFFERED = "JOB_"
"""HTTP jobs may refer to variables of the worker's environment that begin so."""
SECRETS = "/run/secrets/"
"""HTTP jobs may refer to files below this folder."""
_COMMAND = {
    "environment": "environment",
    "inherits": "inherits",
    "directory": "directory",
    "success_codes": "success",
    "retry_codes": "retry_codes",
    "permanent_codes": "permanent",
    "result": "result",
    "memory": "memory",
    "grace": "grace",
}


class Made(msgspec.Struct, frozen=True):
    """The target as data, with a stand-in for its function. `member` is where the body has it."""

    member: str
    function: Callable[..., Any]
    data: dict[str, Any]
    runs: Definition | None = None
    """The definition of the job whose function it runs."""

    @property
    def declared(self) -> dict[str, Any]:
        """The target as a job of code would declare it."""
        return {} if self.runs is not None else self.data


def scopes(data: Mapping[str, Any]) -> tuple[Scope, ...]:
    """What a caller needs to define a job with this target."""
    match data.get("kind"):
        case kinds.COMMAND:
            return (Scope.DEFINE_COMMAND,)
        case kinds.HTTP:
            return (Scope.DEFINE_HTTP,)
        case _:
            return ()


def made(view: View, namespace: str, body: JobBody) -> Made:
    if body.command is not None:
        return _command(body)
    if body.http is not None:
        return _http(body.name, body.http)
    return _function(view, namespace, body)


def check_secrets(data: Mapping[str, Any]) -> None:
    """Refuses literal secrets: the definition is shown to everyone who may read jobs."""
    if data["kind"] not in (kinds.COMMAND, kinds.HTTP):
        return
    named = {**data.get("environment", {}), **data.get("headers", {}), **data.get("query", {})}
    found = [name for name, value in named.items() if isinstance(value, str) and masking.is_secret(name, value)]
    if data["kind"] == kinds.COMMAND:
        words = data["argv"]
        found += [str(word) for word, safe in zip(words, masking.words(words), strict=True) if word != safe]
    elif masking.has_secret(data["url"]):
        found.append("url")
    if found:
        raise DefinitionError(
            f"{found[0].partition('=')[0][:64]} looks like a secret, and definitions are shown to others: refer to a "
            'variable of the worker instead, such as {"env": "JOB_TOKEN"}'
        )


def _command(body: JobBody) -> Made:
    assert body.command is not None
    argv = body.command
    try:
        if isinstance(argv, str):
            argv = command_line.words(argv)
        options = {_COMMAND[name]: value for name in _COMMAND if (value := getattr(body, name)) is not None}
        function, data = targets.command(body.name, argv, options)
    except UsageError as error:
        raise _refused("/command", error) from None
    for name in data["environment"]:
        if _STEERING.fullmatch(name):
            words = f"the variable {name} cannot be set here, because it makes programs load other code"
            raise bad_member(f"/environment/{name}", words)
    return Made("command", function, data)


def _http(name: str, given: HttpTarget) -> Made:
    fields = {field: value for field in given.__struct_fields__ if (value := getattr(given, field)) is not None}
    url = fields.pop("url")
    if "connect_timeout" in fields:
        fields["connect_timeout_s"] = fields.pop("connect_timeout")
    try:
        function, data = targets.http(name, url, fields)
        _check_references([*data["headers"].values(), *data["query"].values()], data.get("secret"))
    except UsageError as error:
        raise _refused("/http", error) from None
    return Made("http", function, data)


def _check_references(values: list[Any], secret: str | None) -> None:
    """A request leaves the machine: it may carry only what the operator of the worker offers to jobs."""
    named = [value for value in values if isinstance(value, dict)] + ([{"env": secret}] if secret else [])
    for reference in named:
        env, file = reference.get("env"), reference.get("file")
        if env is not None and not env.startswith(OFFERED):
            raise DefinitionError(f"a request may refer to variables that begin with {OFFERED}, not to {env}")
        if file is not None and (not file.startswith(SECRETS) or ".." in file.split("/")):
            raise DefinitionError(f"a request may refer to files below {SECRETS}, not to {file[:128]}")


def _function(view: View, namespace: str, body: JobBody) -> Made:
    assert body.function is not None
    row = reader.find(view, namespace, body.function.name, body.function.app)
    if row is None or row.origin == "api" or row.about.target.get("kind", kinds.PROCESS) != kinds.PROCESS:
        words = f"app {body.function.app} has no function {body.function.name}: start a worker of it once"
        raise bad_member("/function/name", words, "unknown_job")
    parameters = row.about.parameters
    takes: dict[str, Any] = {name: Any for name, about in parameters.items() if not about.get("others")}
    defaults = {name: None for name, about in parameters.items() if not about["required"] and name in takes}
    others = any(about.get("others") for about in parameters.values())
    function = stand_in(body.name, takes, "a function of an app", takes_others=others, defaults=defaults)
    data = {"kind": kinds.FUNCTION, "app": row.app, "name": row.name}
    return Made("function", function, data, row.about)


def _refused(pointer: str, error: UsageError) -> Problem:
    return bad_member(pointer, str(error), error.code if error.code == "needs_shell" else "bad_field")
