"""Errors of one cause have one fingerprint."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

import httpx
import msgspec
import pytest
import sqlalchemy
from hypothesis import given
from hypothesis import strategies as st

from rota.domain import error_fingerprint
from rota.domain.outcome import Error

TRACE = """Traceback (most recent call last):
  File "/srv/app/shop/mail.py", line 12, in send
    deliver(to)
  File "/srv/app/shop/smtp.py", line {line}, in {function}
    raise Refused(to)
"""
OWN = str(error_fingerprint.__file__)


def trace(line: int = 40, function: str = "deliver") -> str:
    return TRACE.format(line=line, function=function)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("order 17 is unpaid", "order 18 is unpaid"),
        ("took 1.5 s", "took 12,000.25 s"),
        ("no such user: 'ann'", "no such user: 'bob smith'"),
        ('key "a" is missing', 'key "b" is missing'),
        ("`x` is not known", "`yz` is not known"),
        ("at 0x7f3a", "at 0x10"),
        (
            "execution 0196a3f0-1111-7000-8000-0123456789ab failed",
            "execution 01970000-2222-7abc-9000-ba9876543210 failed",
        ),
        ("request req_bfa4b255", "request req_d05f0710"),
        ("request req_Wm2kP0vA", "request req_9Qz1mmLx"),
        ("commit deadbeef1", "commit 8badf00d2"),
        ("at 2030-01-31 10:00:00", "at 2031-12-01 23:59:59"),
        ("two\n  lines 1", "two lines 2"),
    ],
)
def test_values_in_a_message_do_not_matter(one: str, other: str) -> None:
    assert error_fingerprint.of(Error("ValueError", one)) == error_fingerprint.of(Error("ValueError", other))


def test_line_and_folder_do_not_matter() -> None:
    moved = trace(line=41).replace("/srv/app/", "C:\\app\\")
    assert error_fingerprint.of(Error("E", "no", trace())) == error_fingerprint.of(Error("E", "no", moved))


@pytest.mark.parametrize(
    "other",
    [
        Error("TypeError", "refused", trace()),
        Error("ValueError", "accepted", trace()),
        Error("ValueError", "refused", trace(function="connect")),
        Error("ValueError", "refused", trace().replace("smtp.py", "http.py")),
        Error("ValueError", "refused"),
    ],
)
def test_the_type_the_words_and_the_function_matter(other: Error) -> None:
    assert error_fingerprint.of(Error("ValueError", "refused", trace())) != error_fingerprint.of(other)


@dataclass
class Options:
    """Its `__init__` has no file."""

    options: object = field(default_factory=partial(json.loads, "{"))


def construct() -> None:
    Options()


def ask() -> None:
    httpx.get("http://127.0.0.1:1/", trust_env=False)


def ask_otherwise() -> None:
    httpx.get("http://127.0.0.1:1/", trust_env=False)


def select() -> None:
    with sqlalchemy.create_engine("sqlite://").connect() as connection:
        connection.execute(sqlalchemy.text("SELECT * FROM missing"))


def parse() -> None:
    json.loads("{")


def convert() -> None:
    msgspec.convert("a", int)


def translate() -> None:
    try:
        parse()
    except ValueError as error:
        raise RuntimeError("not JSON") from error


def in_a_thread() -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(parse).result()


def compiled() -> None:
    exec("json.loads('{')", {"json": json})


def in_a_group() -> None:
    try:
        parse()
    except ValueError as error:
        raise ExceptionGroup("several", [error]) from None


def raised(function: Callable[[], object]) -> Error:
    try:
        function()
    except Exception as error:
        return Error(type(error).__name__, "no", traceback.format_exc())
    raise AssertionError("it was to raise")


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (ask, "ask"),
        (select, "select"),
        (parse, "parse"),
        (convert, "convert"),
        (translate, "translate"),
        (in_a_thread, "parse"),
        (compiled, "compiled"),
        (in_a_group, "parse"),
        (construct, "construct"),
    ],
)
def test_the_place_is_in_the_users_own_code(function: Callable[[], object], expected: str) -> None:
    assert error_fingerprint.raised_at(raised(function).traceback) == f"test_error_fingerprint.py:{expected}"


def test_one_line_of_a_library_is_not_one_cause() -> None:
    assert error_fingerprint.of(raised(ask)) != error_fingerprint.of(raised(ask_otherwise))


@pytest.mark.parametrize(
    "path",
    [
        "/usr/lib/python3.12/json/decoder.py",
        "/usr/lib64/python3.11/asyncio/runners.py",
        "/usr/lib/python312.zip/json/decoder.py",
        "/Library/Frameworks/Python.framework/Versions/3.13/lib/python3.13/json/decoder.py",
        "/opt/pypy/lib/pypy3.10/json/decoder.py",
        "/usr/lib/python3/dist-packages/requests/api.py",
        "/srv/app/.venv/lib/python3.14t/site-packages/requests/api.py",
        "C:\\app\\venv\\Lib\\site-packages\\requests\\api.py",
        "<frozen importlib._bootstrap>",
        "<string>",
        OWN,
        OWN.replace("domain/error_fingerprint", "sdk/handle"),
    ],
)
def test_frames_of_libraries_and_of_rota_are_passed_over(path: str) -> None:
    outer = '  File "/srv/lib/python/rota/orders.py", line 3, in pay\n    call()\n'
    inner = f'  File "{path}", line 9, in call\n    raise\n'
    assert error_fingerprint.raised_at(outer + inner) == "orders.py:pay"
    assert error_fingerprint.raised_at(inner).endswith(":call")


def test_a_message_that_looks_like_a_frame_is_none() -> None:
    assert error_fingerprint.raised_at(trace() + 'Refused: see File "/srv/x.py", line 1, in x\n') == "smtp.py:deliver"


def test_words_with_apostrophes_and_words_of_hexadecimal_letters_are_kept() -> None:
    assert error_fingerprint.normalised("it isn't a facade, and can't be") == "it isn't a facade, and can't be"


@given(st.text(), st.text(), st.text())
def test_every_error_has_a_fingerprint(kind: str, message: str, traceback: str) -> None:
    found = error_fingerprint.of(Error(kind, message, traceback))
    assert len(found) == error_fingerprint.DIGITS
    assert found == error_fingerprint.of(Error(kind, message, traceback))
