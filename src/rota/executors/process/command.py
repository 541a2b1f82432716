"""Running a command: a program with arguments, in processes of its own, never by way of a shell."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from rota.domain import payload
from rota.domain.claim import Claim
from rota.domain.decoding import prepare
from rota.domain.errors import ArgumentsError, DefinitionError
from rota.domain.instant import MICROSECONDS
from rota.domain.lifecycle import Rules
from rota.domain.outcome import Error, Failed, GivenBack, Lost, Outcome, Succeeded
from rota.domain.requirement import COMMANDS
from rota.domain.status import Reason
from rota.domain.usage import Usage
from rota.executors import reference
from rota.executors.attempt_state import AttemptState
from rota.executors.port import Executor, Processes
from rota.executors.process import spawner
from rota.executors.process.lines import CHUNK, Lines, last_of
from rota.executors.process.spawned import ExitStatus
from rota.executors.process.spawner import Spawner
from rota.executors.process.start_backoff import StartBackoff, not_started
from rota.executors.process.started_processes import Refused
from rota.executors.reference import NO_SECRETS, Missing, Reference, Secrets

INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR")
KILL_S = 5.0
"""How long a command may take to end after it was killed."""
_TOKEN = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_]*)\}|[{}]")
_LIST = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\*\}")


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A command as data. `{name}` in `argv`, `environment` and `directory` is an argument; `{{` and `}}` are braces.

    An element `{name*}` of `argv` takes a list, and becomes as many elements as the list has.
    """

    argv: Sequence[str | Reference]
    environment: Mapping[str, str | Reference] = {}
    inherits: list[str] = msgspec.field(default_factory=lambda: list(INHERITED))
    """Names of the worker's environment variables that it gets."""
    directory: str | None = None
    """Where it runs. An argument stands for one name in the path, never for `..` or `a/b`."""
    success: list[int] = msgspec.field(default_factory=lambda: [0])
    retry: list[int] | None = None
    """Exit codes after which it is retried; None for all that are neither in `success` nor in `permanent`."""
    permanent: list[int] = []
    memory_bytes: int | None = None
    grace_s: float = 10.0
    result: Literal["none", "json", "text"] = "none"
    """The result: none, the last line of the standard output as JSON, or all of it as text."""

    def __post_init__(self) -> None:
        if not self.argv or not self.argv[0]:
            raise DefinitionError("a command needs the name of a program")
        if isinstance(self.argv[0], Reference):
            raise DefinitionError("the program of a command cannot be a reference")
        if self.grace_s < 0 or (self.memory_bytes is not None and self.memory_bytes <= 0):
            raise DefinitionError("grace_s and memory_bytes of a command must be positive")
        for name in (*self.environment, *self.inherits):
            if not name or "=" in name or "\0" in name:
                raise DefinitionError(f"{name!r} cannot be the name of an environment variable")
        for where, text in _templates(self):
            if "\0" in text:
                raise DefinitionError(f"{where} holds a NUL character")
        parameters(self)
        _check_lists(self)
        _check_codes({"success": self.success, "retry_codes": self.retry or [], "permanent": self.permanent})


prepare(Command)


def _check_codes(said: Mapping[str, list[int]]) -> None:
    """Checks that each exit code is possible and has one meaning."""
    known: dict[int, str] = {}
    for name, codes in said.items():
        for code in codes:
            if not 0 <= code <= 255:
                raise DefinitionError(f"{name}: an exit code is a number from 0 to 255, not {code}")
            if known.setdefault(code, name) != name:
                raise DefinitionError(f"the exit code {code} cannot be in {known[code]} and in {name}")


def parameters(command: Command) -> list[str]:
    """The names of a command's placeholders, in the order in which they appear."""
    found: dict[str, None] = {}
    for where, text in _templates(command):
        found |= dict.fromkeys(_names(text, where))
    return list(found)


def lists(command: Command) -> frozenset[str]:
    """The parameters that take a list: those with an element `{name*}` of their own in `argv`."""
    return frozenset(match[1] for element in reference.texts(command.argv) if (match := _LIST.fullmatch(element)))


def references(command: Command) -> frozenset[Reference]:
    return reference.references((*command.argv, *command.environment.values()))


def _templates(command: Command) -> Iterator[tuple[str, str]]:
    """(place, text) of every text that may have placeholders. Errors name the place only: the text may be a secret."""
    for place, element in enumerate(command.argv):
        if isinstance(element, str):
            yield f"argv[{place}]", element
    for name, value in command.environment.items():
        if isinstance(value, str):
            yield f"the variable {name}", value
    yield "the directory", command.directory or ""


def _names(text: str, where: str) -> list[str]:
    if match := _LIST.fullmatch(text):
        return [match[1]]
    found = []
    for token in _TOKEN.finditer(text):
        if token[0] in ("{", "}"):
            raise DefinitionError(
                f"a single {token[0]} in {where}: write {{name}}, double it, or give {{name*}} an element of its own"
            )
        if token[1]:
            found.append(token[1])
    return found


def _check_lists(command: Command) -> None:
    """Checks that a parameter is a list or a text, not both, and that `{name*}` is only in `argv`."""
    single = set[str]()
    for where, text in _templates(command):
        is_list = _LIST.fullmatch(text)
        if is_list and not where.startswith("argv"):
            raise DefinitionError(f"{text} is for an element of a command: {where} takes no list")
        single |= set() if is_list else set(_names(text, where))
    if both := sorted(lists(command) & single):
        raise DefinitionError(f"{{{both[0]}*}} takes a list and {{{both[0]}}} a text: give them different names")


class _Call(NamedTuple):
    """A command with its arguments filled in."""

    argv: list[str]
    environment: dict[str, str]
    directory: str | None
    secrets: Secrets


@cache
def shared_processes() -> Processes:
    """One back-off for all commands of this process: if one cannot be started, the others cannot either."""
    return Processes(StartBackoff(COMMANDS))


class CommandExecutor(Executor):
    """Runs the command of one job; several attempts may run at once."""

    def __init__(
        self,
        command: Command,
        rules: Rules | None = None,
        *,
        max_result_bytes: int = payload.MOST_BYTES,
        processes: Processes | None = None,
    ) -> None:
        self.command = command
        self.rules = rules or Rules()
        self.grace_s = command.grace_s + KILL_S
        self.processes = processes or Processes(StartBackoff(COMMANDS))
        self.starts = self.processes.starts
        self._max_result_bytes = max_result_bytes

    async def run(self, claim: Claim, attempt: AttemptState) -> Outcome:
        attempt.usage = Usage()
        try:
            secrets = await reference.read(references(self.command))
            arguments = payload.decode(claim.arguments, "the arguments")
            argv, variables, directory = filled(self.command, arguments, secrets)
        except ArgumentsError as error:
            return Failed(payload.error("ArgumentsError", str(error)), Reason.BAD_ARGUMENTS, permanent=True)
        except Missing as error:
            return Failed(payload.error("SecretMissing", str(error)))
        environment = {**self._inherited(), **variables, **_attempt_variables(claim, attempt.deadline)}
        return secrets.mask_error(await self._run(claim, attempt, _Call(argv, environment, directory, secrets)))

    async def _run(self, claim: Claim, attempt: AttemptState, call: _Call) -> Outcome:
        if self.starts.room == 0:
            return GivenBack(Reason.NOT_BEGUN, error=_no_process(self.starts.why))  # Another worker may run it at once.
        kept = None
        if self.command.result != "none":
            kept = _Kept(self._max_result_bytes, keeps_all=self.command.result == "text")
        on = Spawner() if claim.is_suspect else spawner.shared()
        self.starts.begin()
        try:
            keep = None if kept is None else kept.keep
            with _lines("stdout", attempt, call, keep) as out, _lines("stderr", attempt, call) as err:
                status = await self._run_to_end(on, call, out, err, attempt)
        except Refused as refused:
            return self._not_started(claim, refused, call)
        except OSError as error:
            return self._not_started(claim, Refused("descriptors", error.errno or 0), call)
        finally:
            if claim.is_suspect:
                on.close()
        if status.error:
            # A suspect has killed its own spawner. The shared spawner may have been killed by any command.
            lost = payload.error("SpawnerLost", f"the command {status.how}: {status.error}", last_of(out, err))
            return Lost(lost, shared=not claim.is_suspect)
        return self._outcome(status, out, err, kept)

    def abandon(self) -> None:
        spawner.shared().close()

    async def _run_to_end(self, on: Spawner, call: _Call, out: Lines, err: Lines, attempt: AttemptState) -> ExitStatus:
        """Runs the command to its end. A cancel ends the command first."""
        where = (call.argv, call.environment, call.directory)
        spawned = await on.spawn(*where, out.writing, err.writing, memory_bytes=self.command.memory_bytes)
        self.starts.worked()
        out.opened()
        err.opened()
        try:
            status = await spawned.wait()
        except asyncio.CancelledError:
            spawned.stop(self.command.grace_s)
            attempt.usage = (await spawned.wait_despite_cancels()).usage
            raise
        attempt.usage = status.usage
        return status

    def _not_started(self, claim: Claim, refused: Refused, call: _Call) -> Failed | GivenBack:
        match refused.step:
            case "program":
                what = f"the program {call.argv[0]!r} cannot be started"
            case "directory":
                what = f"the directory {call.directory!r} cannot be entered"
            case _:
                self.starts.failed(str(refused))
                return not_started(claim, _no_process(str(refused)))
        return Failed(payload.error("NotStarted", f"{what}: {refused}"), permanent=refused.is_final)

    def _inherited(self) -> dict[str, str]:
        found = {name: os.environ[name] for name in self.command.inherits if name in os.environ}
        if "PATH" in self.command.inherits:
            # `python` is the Python of the worker, also if its environment was not activated.
            own = str(Path(sys.executable).parent)
            found["PATH"] = os.pathsep.join(dict.fromkeys([own, *found.get("PATH", os.defpath).split(os.pathsep)]))
        return found

    def _outcome(self, status: ExitStatus, out: Lines, err: Lines, kept: _Kept | None) -> Outcome:
        command, code, tail = self.command, status.exit_code, last_of(out, err)
        if status.out_of_memory:
            words = f"the command held {status.peak_bytes:,} bytes; its limit is {command.memory_bytes:,}"
            return Failed(payload.error("OutOfMemory", words, tail), Reason.OUT_OF_MEMORY)
        if code is None:
            return Failed(payload.error("Signal", f"the command {status.how}", tail))
        if code in command.success:
            return self._result(out, kept)
        is_final = code in command.permanent or (command.retry is not None and code not in command.retry)
        return Failed(payload.error("ExitCode", f"the command ended with exit code {code}", tail), permanent=is_final)

    def _result(self, out: Lines, kept: _Kept | None) -> Outcome:
        if kept is None:
            return Succeeded()
        try:
            text = kept.text()
            value = payload.decode(text, "the last line of its output") if self.command.result == "json" else text
            return Succeeded(payload.encode(value, "the result", self._max_result_bytes))
        except ArgumentsError as error:
            return Failed(payload.error("ResultError", str(error), out.last()), Reason.BAD_RESULT, permanent=True)


def _no_process(why: str) -> Error:
    return payload.error("NotStarted", f"no process could be started for the command: {why}")


@contextlib.contextmanager
def _lines(
    stream: str, attempt: AttemptState, call: _Call, keep: Callable[[bytes], None] | None = None
) -> Iterator[Lines]:
    lines = Lines(stream, lambda name, texts: attempt.write_output(name, call.secrets.mask_all(texts)), keep)
    try:
        yield lines
    finally:
        lines.drain()
        lines.close()


class _Kept:
    """The output that becomes the result: all of it, or the last line that is not empty; bounded as results are."""

    def __init__(self, most_bytes: int, *, keeps_all: bool) -> None:
        self._most_bytes = most_bytes
        self._keeps_all = keeps_all
        self._kept = bytearray()
        self._is_cut = False

    def keep(self, data: bytes) -> None:
        self._kept += data
        if not self._keeps_all and b"\n" in data:
            self._keep_last_line()
        if len(self._kept) > 2 * self._most_bytes + CHUNK:
            del self._kept[: -self._most_bytes - 1]
            self._is_cut = True

    def _keep_last_line(self) -> None:
        """Drops everything before the last line that is not empty, and the empty lines after that line."""
        text = self._kept.rstrip()
        is_ended = b"\n" in self._kept[len(text) :]
        start = text.rfind(b"\n") + 1
        if start or is_ended:
            self._is_cut = self._is_cut and not start
            self._kept = text[start:] + (b"\n" if is_ended else b"")

    def text(self) -> str:
        data, is_whole = bytes(self._kept).strip(), not self._is_cut
        if not self._keeps_all:
            _, newline, data = data.rpartition(b"\n")
            is_whole = is_whole or bool(newline)
        if not is_whole or len(data) > self._most_bytes:
            what = "output" if self._keeps_all else "last line of its output"
            raise ArgumentsError(f"the {what} is longer than {self._most_bytes:,} bytes, which are stored at most")
        return data.decode(errors="replace").strip()


def filled(
    command: Command, arguments: Any, secrets: Secrets = NO_SECRETS
) -> tuple[list[str], dict[str, str], str | None]:
    """The argv, environment and directory for these arguments; an ArgumentsError says what does not fit."""
    if not isinstance(arguments, dict):
        raise ArgumentsError("the arguments of a command must be an object")
    names = parameters(command)
    if missing := [name for name in names if name not in arguments]:
        raise ArgumentsError(f"the command needs an argument {missing[0]!r}")
    if unknown := sorted(arguments.keys() - set(names)):
        raise ArgumentsError(f"the command has no place for an argument {unknown[0]!r}")
    argv: list[str] = []
    for element in command.argv:
        if isinstance(element, str) and (whole := _LIST.fullmatch(element)):
            argv += _texts(arguments[whole[1]], whole[1])
        else:
            argv.append(_single(element, arguments, secrets))
    if not argv or not argv[0]:
        raise ArgumentsError("the arguments leave no program to start")
    environment = {name: _single(text, arguments, secrets) for name, text in command.environment.items()}
    return argv, environment, None if command.directory is None else _directory(command.directory, arguments)


def _directory(template: str, arguments: Mapping[str, Any]) -> str:
    """Fills in the directory. An argument stays within its part of the path."""
    parts = [(part, _replaced(part, arguments)) for part in template.split("/")]
    for part, name in parts:
        if part != name and (name in ("", ".", "..") or "/" in name):
            raise ArgumentsError(
                f"the arguments turn {part} in the directory into {name[:64]!r}, "
                "which is not the name of a single folder"
            )
    return "/".join(name for _, name in parts)


def _single(value: str | Reference, arguments: Mapping[str, Any], secrets: Secrets) -> str:
    return secrets[value] if isinstance(value, Reference) else _replaced(value, arguments)


def _replaced(template: str, arguments: Mapping[str, Any]) -> str:
    """Replaces the placeholders of the template. A placeholder inside the value of an argument is kept as text."""
    return _TOKEN.sub(lambda token: _text(arguments[token[1]], token[1]) if token[1] else token[0][0], template)


def _texts(value: Any, name: str) -> list[str]:
    if not isinstance(value, list):
        raise ArgumentsError(f"the argument {name!r} must be a list, because the command has {{{name}*}} for it")
    return [_text(item, name) for item in value]


def _text(value: Any, name: str) -> str:
    match value:
        case str():
            if "\0" in value:
                raise ArgumentsError(f"the argument {name!r} holds a NUL character")
            return value
        case bool() | int() | float():
            return msgspec.json.encode(value).decode()
        case _:
            kind = "null" if value is None else "a list" if isinstance(value, list) else "an object"
            hint = f"; only a parameter written {{{name}*}} takes a list" if isinstance(value, list) else ""
            raise ArgumentsError(f"the argument {name!r} is or holds {kind}, which is not a text for a command{hint}")


def _attempt_variables(claim: Claim, deadline: int | None) -> dict[str, str]:
    """Variables about the attempt. The deadline is in whole seconds since 1970 UTC, as `date +%s` prints."""
    variables = {
        "ROTA_EXECUTION_ID": claim.id,
        "ROTA_JOB": claim.job,
        "ROTA_ATTEMPT": str(claim.attempts + 1),
        "ROTA_FENCE": str(claim.fence),
    }
    if deadline is not None:
        variables["ROTA_DEADLINE"] = str(deadline // MICROSECONDS)
    return variables
