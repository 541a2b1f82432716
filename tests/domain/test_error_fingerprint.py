"""Errors of one cause have one fingerprint."""

from __future__ import annotations

import pytest
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


def test_words_with_apostrophes_and_words_of_hexadecimal_letters_are_kept() -> None:
    assert error_fingerprint.normalised("it isn't a facade, and can't be") == "it isn't a facade, and can't be"


@given(st.text(), st.text(), st.text())
def test_every_error_has_a_fingerprint(kind: str, message: str, traceback: str) -> None:
    found = error_fingerprint.of(Error(kind, message, traceback))
    assert len(found) == error_fingerprint.DIGITS
    assert found == error_fingerprint.of(Error(kind, message, traceback))
