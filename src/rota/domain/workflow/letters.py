"""The letters of a run: one character per step, in the order of the steps, stored in one column.

A letter in upper case is the outcome of a step that a retry kept from an earlier run; it counts like the lower case.
"""

from __future__ import annotations

from collections.abc import Mapping

from rota.domain.status import Status

UNDECIDED, OPEN, SUCCESS, FAILED, CANCELLED, SKIPPED, BLOCKED = ".osfckb"
"""Open: placed and not ended. Blocked: never ran because an upstream was bad."""
BAD = FAILED + CANCELLED + BLOCKED
ENDED = SUCCESS + SKIPPED + BAD

_LETTERS = {
    Status.SUCCESS: SUCCESS,
    Status.FAILED: FAILED,
    Status.CANCELLED: CANCELLED,
    Status.SKIPPED: SKIPPED,
}
_STATUSES = {letter: status for status, letter in _LETTERS.items()} | {BLOCKED: Status.SKIPPED}


def letter_of(status: Status) -> str:
    """The letter of a step whose execution ended."""
    return _LETTERS[status]


def status_of(letter: str) -> Status | None:
    """The status that a step's letter says; None before its end. A blocked step is skipped."""
    return _STATUSES.get(letter.lower())


def is_kept(letter: str) -> bool:
    return letter.isupper()


def is_over(letters: str) -> bool:
    """Whether every step has ended. A map that failed early has ended; its items may still run."""
    return UNDECIDED not in letters and OPEN not in letters


def with_ends(letters: str, ends: Mapping[int, str]) -> str:
    """The letters after the ends of open steps, by number."""
    changed = list(letters)
    for number, letter in ends.items():
        assert changed[number] == OPEN, f"step {number} cannot end as {letter!r}: it is {changed[number]!r}"
        changed[number] = letter
    return "".join(changed)


def counted(letters: str) -> tuple[int, int, int]:
    """How many of the letters, in lower case, are success, skipped and bad."""
    bad = letters.count(FAILED) + letters.count(CANCELLED) + letters.count(BLOCKED)
    return letters.count(SUCCESS), letters.count(SKIPPED), bad
