"""Named statements from `queries/*.sql`.

A block starts with `-- name: some_name`, optionally followed by `@sqlite` or `@postgres` for a variant that only
this dialect uses. A block may hold several statements; they run in order, as one step of an operation.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

_HEADER = re.compile(r"^-- name: (\w+)(?: @(\w+))?[ \t]*$", re.MULTILINE)
_COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)


@cache
def load(dialect: str) -> dict[str, tuple[str, ...]]:
    """Every statement that `dialect` uses, by name."""
    general: dict[str, tuple[str, ...]] = {}
    special: dict[str, tuple[str, ...]] = {}
    for file in sorted((resources.files("rota.store") / "queries").iterdir(), key=lambda file: file.name):
        pieces = _HEADER.split(file.read_text())
        for name, variant, body in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
            if variant in (None, dialect):
                target = special if variant else general
                assert name not in target, f"statement {name} is defined twice"
                target[name] = _texts(body)
    return general | special


def _texts(body: str) -> tuple[str, ...]:
    return tuple(text.strip() for text in _COMMENT.sub("", body).split(";") if text.strip())
