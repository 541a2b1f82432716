"""Running a command: a program with arguments, in processes of its own, never by way of a shell."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from rota.domain import payload
from rota.domain.claim import Claim
from rota.domain.errors import ArgumentsError, DefinitionError
from rota.domain.lifecycle import Rules
from rota.domain.outcome import Error, Failed, GivenBack, Lost, Outcome, Succeeded
from rota.domain.requirement import COMMANDS
from rota.domain.status import Reason
from rota.domain.usage import Usage
from rota.executors import stage
from rota.executors.context import Completions, Context
from rota.executors.ended import Ended
from rota.executors.lines import Lines, last_of
from rota.executors.stage import Refused, Stage
from rota.executors.starts import Start, Starts
from rota.executors.unbegun import unbegun, untried

INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR")
KILL_S = 5.0
"""By so much longer than its grace, at the most, takes the end of a command that must be killed."""
MICROSECONDS = 1_000_000
_TOKEN = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_]*)\}|[{}]")
_WHOLE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A command as data. `{name}` in `argv`, `environment` and `directory` is an argument; `{{` and `}}` are braces."""

    argv: list[str]
    environment: dict[str, str] = {}
    inherits: list[str] = msgspec.field(default_factory=lambda: list(INHERITED))
    """The variables that it gets from the worker, where that has them."""
    directory: str | None = None
    """Where it runs. What is put in is a name there, and leads neither deeper nor out."""
    success: list[int] = msgspec.field(default_factory=lambda: [0])
    retry: list[int] | None = None
    """Exit codes after which it is tried again; None for all that mean neither success nor a failure for good."""
    permanent: list[int] = []
    memory_bytes: int | None = None
    grace_s: float = 10.0
    result: Literal["none", "json", "text"] = "none"
    """What its standard output becomes: nothing, the last line as JSON, or the text without the space around it."""

    def __post_init__(self) -> None:
        if not self.argv or not self.argv[0]:
            raise DefinitionError("a command needs the name of a program")
        if self.grace_s < 0 or (self.memory_bytes is not None and self.memory_bytes <= 0):
            raise DefinitionError("grace_s and memory_bytes of a command must be positive")
        for name in (*self.environment, *self.inherits):
            if not name or "=" in name or "\0" in name:
                raise DefinitionError(f"{name!r} cannot be the name of an environment variable")
        for text in (*self.argv, *self.environment.values(), self.directory or ""):
            if "\0" in text:
                raise DefinitionError(f"{text!r} holds a NUL character")
        parameters(self)
        _check_codes({"success": self.success, "retry_codes": self.retry or [], "permanent": self.permanent})


def _check_codes(said: Mapping[str, list[int]]) -> None:
    """An exit code means one thing, and can occur."""
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
    for text in (*command.argv, *command.environment.values(), command.directory or ""):
        for token in _TOKEN.finditer(text):
            if token[0] in ("{", "}"):
                raise DefinitionError(f"a single {token[0]} in {text!r}: write {{name}}, or double it")
            if token[1]:
                found[token[1]] = None
    return list(found)


class CommandExecutor:
    """Runs one job's command, an attempt at a time or many at once."""

    def __init__(
        self, command: Command, rules: Rules | None = None, *, most_result_bytes: int = payload.MOST_BYTES
    ) -> None:
        self.command = command
        self._rules = rules or Rules()
        self._most_result_bytes = most_result_bytes
        self._stage: stage.Stage | None = None
        self.starts = Starts(COMMANDS)
        """Those of all commands of the worker, if there is one."""

    @property
    def rules(self) -> Rules:
        return self._rules

    @property
    def completions(self) -> Completions | None:
        return None

    begins_later = False

    @property
    def grace_s(self) -> float:
        return self.command.grace_s + KILL_S

    async def run(self, claim: Claim, context: Context) -> Outcome:
        context.usage = Usage()
        try:
            arguments = payload.decode(claim.arguments, "the arguments")
            argv, variables, directory = filled(self.command, arguments)
        except ArgumentsError as error:
            return Failed(payload.error("ArgumentsError", str(error)), Reason.BAD_ARGUMENTS, permanent=True)
        environment = {**self._inherited(), **variables, **_told(context)}
        kept = None
        if self.command.result != "none":
            kept = _Kept(self._most_result_bytes, keeps_all=self.command.result == "text")
        if self.starts.room == 0:
            return untried(_no_process(self.starts.why))
        start, self._stage = self.starts.begin(), stage.shared()
        on = self._stage.apart() if claim.is_suspect else self._stage
        try:
            with _lines("stdout", context, kept) as out, _lines("stderr", context) as err:
                ended = await self._ended(on, argv, environment, directory, out, err, context, start)
        except Refused as refused:
            return _not_started(claim, refused, argv[0], directory, start)
        except OSError as error:
            return _not_started(claim, Refused("descriptors", error.errno or 0), argv[0], directory, start)
        finally:
            start.dropped()
            if on is not self._stage:
                on.close()
        if ended.error:
            # Where others were too, nobody knows who did that; apart, nobody else could have.
            lost = payload.error("StageLost", f"the command {ended.how}: {ended.error}", last_of(out, err))
            return Lost(lost, shared=on is self._stage)
        return self._outcome(ended, out, err, kept)

    def abandon(self) -> None:
        if self._stage is not None:
            self._stage.abandon()

    async def _ended(
        self,
        on: Stage,
        argv: list[str],
        environment: dict[str, str],
        directory: str | None,
        out: Lines,
        err: Lines,
        context: Context,
        start: Start,
    ) -> Ended:
        """How the command ended. If this must stop, so must the command, before anything else happens."""
        command = self.command
        spawned = await on.spawn(
            argv, environment, directory, out.writing, err.writing, memory_bytes=command.memory_bytes
        )
        start.worked()
        out.opened()
        err.opened()
        try:
            ended = await spawned.wait()
        except asyncio.CancelledError:
            spawned.stop(command.grace_s)
            context.usage = (await spawned.outlasted()).usage
            raise
        context.usage = ended.usage
        return ended

    def _inherited(self) -> dict[str, str]:
        return {name: os.environ[name] for name in self.command.inherits if name in os.environ}

    def _outcome(self, ended: Ended, out: Lines, err: Lines, kept: _Kept | None) -> Outcome:
        command, code, tail = self.command, ended.exit_code, last_of(out, err)
        if ended.out_of_memory:
            words = f"the command held {ended.peak_bytes:,} bytes; its limit is {command.memory_bytes:,}"
            return Failed(payload.error("OutOfMemory", words, tail), Reason.OUT_OF_MEMORY)
        if code is None:
            return Failed(payload.error("Signal", f"the command {ended.how}", tail))
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
            return Succeeded(payload.encode(value, "the result", self._most_result_bytes))
        except ArgumentsError as error:
            return Failed(payload.error("ResultError", str(error), out.last()), Reason.BAD_RESULT, permanent=True)


def _not_started(
    claim: Claim, refused: Refused, program: str, directory: str | None, start: Start
) -> Failed | GivenBack:
    match refused.step:
        case "program":
            what = f"the program {program!r} cannot be started"
        case "directory":
            what = f"the directory {directory!r} cannot be entered"
        case _:
            start.failed(str(refused))
            return unbegun(claim, _no_process(str(refused)))
    return Failed(payload.error("NotStarted", f"{what}: {refused}"), permanent=refused.is_final)


def _no_process(why: str) -> Error:
    return payload.error("NotStarted", f"no process could be started for the command: {why}")


@contextlib.contextmanager
def _lines(stream: str, context: Context, kept: _Kept | None = None) -> Iterator[Lines]:
    lines = Lines(stream, context.write_lines, kept)
    try:
        yield lines
    finally:
        lines.drain()
        lines.close()


class _Kept:
    """What becomes the result: all that comes, or the last line that is not empty. Not more than may be stored."""

    def __init__(self, most_bytes: int, *, keeps_all: bool) -> None:
        self._most_bytes = most_bytes
        self._keeps_all = keeps_all
        self._kept = bytearray()
        self._is_line_over = False
        self._is_too_much = False

    def text(self) -> str:
        if self._is_too_much:
            what = "output" if self._keeps_all else "last line of its output"
            raise ArgumentsError(f"the {what} is longer than {self._most_bytes:,} bytes, which are stored at most")
        return self._kept.decode(errors="replace").strip()

    def keep(self, data: bytes) -> None:
        if not self._keeps_all:
            lines = data.split(b"\n")
            for index, line in enumerate(lines):
                self._keep_line(line)
                self._is_line_over = self._is_line_over or index < len(lines) - 1
        elif not self._is_too_much:
            self._add(data)

    def _keep_line(self, data: bytes) -> None:
        """Adds to the line that is kept; the first thing after its end that is not space begins another."""
        if self._is_line_over and data.strip():
            self._kept.clear()
            self._is_line_over = self._is_too_much = False
        if not self._is_line_over and not self._is_too_much:
            self._add(data)

    def _add(self, data: bytes) -> None:
        self._kept += data
        if len(self._kept) > self._most_bytes:
            self._is_too_much = True
            self._kept.clear()


def filled(command: Command, arguments: Any) -> tuple[list[str], dict[str, str], str | None]:
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
        whole = _WHOLE.fullmatch(element)
        if whole and isinstance(value := arguments[whole[1]], list):
            argv += [_text(item, whole[1]) for item in value]
        else:
            argv.append(_replaced(element, arguments))
    if not argv or not argv[0]:
        raise ArgumentsError("the arguments leave no program to start")
    environment = {name: _replaced(text, arguments) for name, text in command.environment.items()}
    return argv, environment, None if command.directory is None else _directory(command.directory, arguments)


def _directory(template: str, arguments: Mapping[str, Any]) -> str:
    """What is put in stays within the part of the path that it was put in."""
    parts = [(part, _replaced(part, arguments)) for part in template.split("/")]
    for part, name in parts:
        if part != name and (name in ("", ".", "..") or "/" in name):
            raise ArgumentsError(f"the part {part} of the directory must become the name of one, not {name[:64]!r}")
    return "/".join(name for _, name in parts)


def _replaced(template: str, arguments: Mapping[str, Any]) -> str:
    """What a placeholder stands for is put in once, and never looked into."""
    return _TOKEN.sub(lambda token: _text(arguments[token[1]], token[1]) if token[1] else token[0][0], template)


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
            raise ArgumentsError(f"the argument {name!r} is or holds {kind}, which is no text for a command")


def _told(context: Context) -> dict[str, str]:
    """What a command may know of its attempt. The deadline is in whole seconds since 1970 UTC, as `date +%s` says."""
    told = {
        "ROTA_EXECUTION_ID": context.id,
        "ROTA_JOB": context.job,
        "ROTA_ATTEMPT": str(context.attempt),
        "ROTA_FENCE": str(context.fence),
    }
    if context.deadline is not None:
        told["ROTA_DEADLINE"] = str(context.deadline // MICROSECONDS)
    return told
