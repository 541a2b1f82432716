"""How many processes a worker may have: a number, or a range within which the worker scales."""

from __future__ import annotations

import re

import msgspec

from rota.domain.errors import DefinitionError

LEAST, MOST = 1, 256
_FORM = re.compile(r"\s*(\d{1,6})\s*(?:-\s*(\d{1,6})\s*)?")


class Headcount(msgspec.Struct, frozen=True):
    """The least and the greatest number of processes; equal for a worker that does not scale."""

    least: int
    most: int

    @property
    def is_fixed(self) -> bool:
        return self.least == self.most

    @property
    def without_one(self) -> Headcount:
        """After one process was removed without a replacement."""
        return Headcount(max(LEAST, self.least - 1), max(LEAST, self.most - 1))

    def __str__(self) -> str:
        return str(self.most) if self.is_fixed else f"{self.least}–{self.most}"


def parse(value: int | str, what: str = "processes") -> Headcount:
    """2, "2" or "2-8". At least one process is needed to notice new work."""
    found = _FORM.fullmatch(str(value)) if not isinstance(value, bool) else None
    if found is None:
        raise DefinitionError(f"{what} must be a number or a range such as 2-8, not {str(value)[:64]!r}")
    least, most = int(found[1]), int(found[2] or found[1])
    if not LEAST <= least <= MOST or not LEAST <= most <= MOST:
        raise DefinitionError(f"{what} must be between {LEAST} and {MOST}, not {value}")
    if least > most:
        raise DefinitionError(f"{what} must be a range from few to many, such as {most}-{least}, not {value}")
    return Headcount(least, most)
