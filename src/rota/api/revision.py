"""ETags of definitions, and the conditions of requests: If-Match and If-None-Match.

The tag of a definition is its revision, which every change increments, pauses too: `"r12"`. Writes check their
conditions inside the transaction of the change, after the row was locked, so of two writers with one tag only one
succeeds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import msgspec

from rota.api.answer import Answer
from rota.api.problem import Flaw, Problem

_TAGS = re.compile(r'\s*(?:W/)?"[\x21\x23-\x7e]*"\s*(?:,\s*(?:W/)?"[\x21\x23-\x7e]*"\s*)*', re.ASCII)
_TAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e]*"', re.ASCII)


class Conditions(msgspec.Struct, frozen=True):
    """The conditions of a write. None if the header was not sent; `*` stands for any revision."""

    match: tuple[str, ...] | None = None
    none_match: tuple[str, ...] | None = None

    def check(self, current: int | None) -> None:
        """Refuses the write if the definition is not as the caller expects it. `current` is None if there is none."""
        now = None if current is None else tag(current)
        if self.match is not None and (now is None or ("*" not in self.match and now not in self.match)):
            raise _failed("If-Match", now)
        if self.none_match is not None and now is not None and _has(self.none_match, now):
            raise _failed("If-None-Match", now)


def tag(revision: int) -> str:
    return f'"r{revision}"'


def header(revision: int) -> dict[str, str]:
    """For an answer that shows a definition."""
    return {"ETag": tag(revision)}


def conditions(headers: Mapping[str, str]) -> Conditions:
    """For the operation of a PUT, PATCH or DELETE."""
    return Conditions(_tags(headers, "If-Match"), _tags(headers, "If-None-Match"))


def add_or_change(
    conditions: Conditions, lock: Callable[[], int | None], add: Callable[[], bool], change: Callable[[], object]
) -> bool:
    """The operation of a PUT by name; returns whether it made something new.

    `lock` returns the revision, or None; `add` returns False if another transaction was faster.
    """
    known = lock()
    if known is None:
        conditions.check(None)
        if add():
            return True
        known = lock()
    conditions.check(known)
    change()
    return False


def not_modified(headers: Mapping[str, str], revision: int) -> Answer | None:
    """The answer to a GET whose caller has this revision already."""
    known = _tags(headers, "If-None-Match")
    if known is None or not _has(known, tag(revision)):
        return None
    return Answer(status=304, headers=header(revision))


def _has(known: tuple[str, ...], current: str) -> bool:
    """A weak tag may stand for a strong one in If-None-Match, but not in If-Match."""
    return "*" in known or current in (one.removeprefix("W/") for one in known)


def _tags(headers: Mapping[str, str], name: str) -> tuple[str, ...] | None:
    given = headers.get(name.lower())
    if given is None:
        return None
    if given.strip() == "*":
        return ("*",)
    if not _TAGS.fullmatch(given):
        words = f'{name} has the ETag of a definition in quotes, such as "r12", or *'
        raise Problem("bad_header", words, flaws=[Flaw("bad_header", words, header=name)])
    return tuple(_TAG.findall(given))


def _failed(name: str, now: str | None) -> Problem:
    found = f"its ETag is {now} now: read it again and repeat the change" if now else "there is no such definition yet"
    words = f"{name} does not hold: {found}"
    return Problem(
        "precondition_failed",
        words,
        flaws=[Flaw("precondition_failed", words, header=name)],
        headers={"ETag": now} if now else {},
    )
