"""A reference to a value that is known later: `extract.files[0].name`, `input.day`, `run.scheduled_for`.

The root is the id of a step, `input` or `run`. The path leads into its value: `.member`, `[index]` (a negative index
counts from the end), or `["any key"]` with the key as a JSON string.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

import msgspec

from rota.domain.errors import DefinitionError

INPUT, RUN = "input", "run"
RESERVED = (INPUT, RUN)
"""Roots that are not steps."""
Key = str | int

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)
_PART = re.compile(
    r'\.(?P<member>[A-Za-z_][A-Za-z0-9_-]*)|\[(?P<index>0|-?[1-9][0-9]{0,8})\]|\[(?P<key>"(?:[^"\\]|\\.)*")\]', re.ASCII
)
_SUCH_AS = "a reference is written as 'step', 'step.member', 'step[0]' or 'step[\"any key\"]'"


class Reference(msgspec.Struct, frozen=True):
    """A root and the path into its value: members are texts, indexes are numbers."""

    root: str
    path: tuple[Key, ...] = ()

    def __str__(self) -> str:
        return self.root + "".join(map(_part, self.path))


def is_name(text: Any) -> bool:
    """Whether a text may be the id of a step: a letter or `_`, then letters, digits, `_` and `-`."""
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


def parse(text: Any) -> Reference:
    """The reference that a text says; a DefinitionError shows the place that cannot be read."""
    root = _NAME.match(text) if isinstance(text, str) else None
    if root is None:
        raise DefinitionError(f"{text!r} is not a reference: {_SUCH_AS}")
    path: list[Key] = []
    position = root.end()
    while position < len(text):
        found = _PART.match(text, position)
        if found is None:
            _refuse(text, position)
        path.append(_key(found, text))
        position = found.end()
    return Reference(root[0], tuple(path))


def _key(found: re.Match[str], text: str) -> Key:
    if found["member"] is not None:
        return found["member"]
    if found["index"] is not None:
        return int(found["index"])
    try:
        key: str = json.loads(found["key"])
    except ValueError:
        _refuse(text, found.start())
    return key


def _refuse(text: str, position: int) -> NoReturn:
    raise DefinitionError(f"the reference {text!r} cannot be read from {text[position:]!r} on: {_SUCH_AS}")


def _part(key: Key) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    return f".{key}" if is_name(key) else f"[{json.dumps(key, ensure_ascii=False)}]"
