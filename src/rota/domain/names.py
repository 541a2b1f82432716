"""The form of names: of namespaces, apps, jobs, queues and so on."""

from __future__ import annotations

import re

from rota.domain.errors import DefinitionError

LONGEST = 128
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]*")


def check(name: str, what: str) -> str:
    """`name` if it may name a `what`; otherwise an error that says what a name looks like."""
    if isinstance(name, str) and len(name) <= LONGEST and _NAME.fullmatch(name):
        return name
    raise DefinitionError(
        f"{what} must start with a letter or _ and be at most {LONGEST} characters long (letters, digits, and any of "
        f"_ . : -); it is {str(name)[:64]!r}"
    )
