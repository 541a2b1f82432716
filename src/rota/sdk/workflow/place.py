"""Where in the user's code the build is: the file, the line and the expression, for errors."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import NamedTuple

from rota.domain.errors import WorkflowError

ROTA = f"{Path(__file__).resolve().parents[2]}{os.sep}"
"""The folder of Rota's own code."""
_LONGEST = 120


class Place(NamedTuple):
    file: str
    line: int
    expression: str
    inner: str = ""
    """The place in a function that the workflow's function called; empty in its own code."""

    def error(self, workflow: str, message: str) -> WorkflowError:
        shown = f"`{self.expression}`: " if self.expression else ""
        text = f"workflow {workflow!r}: {shortened(self.file)}:{self.line}: {shown}{self.inner}{message}"
        return WorkflowError(text, self.file, self.line, self.expression)


def here(code: CodeType | None) -> Place:
    """The place that is being run, in the function with this code if it is on the stack."""
    frame: FrameType | None = sys._getframe(1)
    frames = []
    while frame is not None:
        frames.append((frame, frame.f_lineno, frame.f_lasti))
        frame = frame.f_back
    return _chosen(frames, code)


def raised_at(traceback: TracebackType | None, code: CodeType | None) -> Place:
    """The place at which an exception was raised."""
    frames = []
    while traceback is not None:
        frames.append((traceback.tb_frame, traceback.tb_lineno, traceback.tb_lasti))
        traceback = traceback.tb_next
    return _chosen(frames[::-1], code)


def shortened(file: str) -> str:
    """The path as seen from the current folder, if it is below it."""
    folder = f"{Path.cwd()}{os.sep}"
    return file.removeprefix(folder)


def _chosen(frames: list[tuple[FrameType, int, int]], code: CodeType | None) -> Place:
    """The innermost place in the function's own code; `frames` begin with the innermost one."""
    users = [frame for frame in frames if not frame[0].f_code.co_filename.startswith(ROTA)] or frames
    own = set() if code is None else set(_nested(code))
    at = next((number for number, (frame, _, _) in enumerate(users) if frame.f_code in own), 0)
    inner = "" if at == 0 else _in_words(*users[0])
    frame, line, instruction = users[at]
    return Place(frame.f_code.co_filename, line, _expression(frame, line, instruction), inner)


def _in_words(frame: FrameType, line: int, instruction: int) -> str:
    name, file = frame.f_code.co_name, shortened(frame.f_code.co_filename)
    return f"in {name}(), {file}:{line}: `{_expression(frame, line, instruction)}`: "


def _nested(code: CodeType) -> Iterator[CodeType]:
    """The code of a function and of the comprehensions and functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _expression(frame: FrameType, line: int, instruction: int) -> str:
    """The source of the instruction; the whole line if the interpreter does not know the columns."""
    file = frame.f_code.co_filename
    positions = list(frame.f_code.co_positions())[instruction // 2]
    first, last, start, end = positions
    if first is None or last is None or start is None or end is None:
        return _one_line(linecache.getline(file, line, frame.f_globals))
    lines = [linecache.getline(file, number, frame.f_globals).encode() for number in range(first, last + 1)]
    if not all(lines):
        return ""
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    texts = [_without_comment(line.decode(errors="replace")) for line in lines]
    return _one_line(texts[0] if texts[0].endswith(":") else " ".join(texts))


def _without_comment(line: str) -> str:
    """As far as that can be seen without parsing: comments stand two spaces behind the code."""
    return line.partition("  #")[0].strip()


def _one_line(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"
