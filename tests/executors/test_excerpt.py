"""The lines around the user's own frames of an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rota.domain import error_fingerprint, payload
from rota.domain.outcome import Error, Excerpt
from rota.domain.payload import MOST_LINE, MOST_TRACEBACK
from rota.executors.excerpt import MOST
from rota.executors.function import described

CODE = """import json


def parse(text):
    # What the caller gave.
    return json.loads(text)


def outer(text):
    try:
        parse(text)
    except ValueError as error:
        raise RuntimeError("not read") from error


def deep(levels):
    raise ValueError("boom") if levels == 0 else deeper(levels)


def deeper(levels):
    deep(levels - 1)"""


def failed(folder: Path, call: str, code: str = CODE) -> tuple[Error, Path]:
    """The error of a call of the code as a file of the user's own."""
    file = folder / "own.py"
    file.write_text(code)
    names: dict[str, Any] = {}
    exec(compile(code, str(file), "exec"), names)
    with pytest.raises((ValueError, RuntimeError, NameError)) as raised:
        eval(call, names)
    return described(raised.value), file


def excerpts(error: Error) -> list[Excerpt]:
    assert error.source is not msgspec.UNSET
    return error.source


def test_own_frames_have_the_lines_around_and_frames_of_libraries_do_not(tmp_path: Path) -> None:
    error, file = failed(tmp_path, "parse('{')")
    own = [one for one in excerpts(error) if one.file == str(file)]
    lines = ["    # What the caller gave.", "    return json.loads(text)", ""]
    assert own == [Excerpt(str(file), 6, 5, lines)]
    assert json.__file__ in error.traceback
    assert json.__file__ not in [one.file for one in excerpts(error)]


def test_the_frames_of_a_cause_come_after_those_of_the_error(tmp_path: Path) -> None:
    error, file = failed(tmp_path, "outer('{')")
    assert [one.line for one in excerpts(error) if one.file == str(file)] == [13, 6, 11]


def test_the_last_line_of_a_file_has_none_after_it(tmp_path: Path) -> None:
    error, file = failed(tmp_path, "deep(1)")
    found = {one.line: (one.first, len(one.lines)) for one in excerpts(error) if one.file == str(file)}
    assert found == {17: (16, 3), 21: (20, 2)}


def test_source_and_traceback_share_one_limit(tmp_path: Path) -> None:
    many = "\n".join(f"def f{n}():  {'#' * 300}\n    f{n + 1}()" for n in range(2 * MOST))
    error, file = failed(tmp_path, "f0()", many)
    found = excerpts(error)
    assert len(found) == MOST
    assert (found[0].line, found[0].file) == (4 * MOST, str(file))
    assert max(len(line) for one in found for line in one.lines) <= MOST_LINE
    assert payload.error("Error", "", "x" * MOST_TRACEBACK, found).source is msgspec.UNSET
    half = payload.error("Error", "", "x" * (MOST_TRACEBACK - 1000), found)
    assert 0 < len(excerpts(half)) < MOST


def test_the_fingerprint_does_not_see_them(tmp_path: Path) -> None:
    error, _ = failed(tmp_path, "parse('{')")
    assert error_fingerprint.of(error) == error_fingerprint.of(msgspec.structs.replace(error, source=msgspec.UNSET))


def test_an_error_without_own_source_is_stored_as_before() -> None:
    error = described(ValueError("never raised"))
    assert msgspec.json.decode(msgspec.json.encode(error)).keys() == {"type", "message", "traceback"}
