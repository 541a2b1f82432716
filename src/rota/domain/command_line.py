"""A command that is written as one text: split into words as a shell would, and run without one."""

from __future__ import annotations

import shlex

from rota.domain.errors import DefinitionError

_OPERATORS = frozenset("|&;<>()\n\r")
_SUCH_AS = '["sh", "-c", "…"]'


class NeedsShell(DefinitionError):
    """The text has an operator that only a shell understands."""

    code = "needs_shell"


def words(text: str) -> list[str]:
    """Refuses operators outside of quotes: without a shell they would become arguments."""
    if (operator := _operator(text)) is not None:
        shown = "a line break" if operator in "\n\r" else operator
        raise NeedsShell(f"{shown} needs a shell, and commands run without one: write {_SUCH_AS}, or put it in quotes")
    try:
        found = shlex.split(text)
    except ValueError:
        raise DefinitionError("a quote is not closed, or the text ends with a backslash") from None
    if not found or not found[0]:
        raise DefinitionError("a command needs the name of a program")
    return found


def _operator(text: str) -> str | None:
    """The first operator outside of quotes."""
    quote, is_escaped = "", False
    for char in text:
        if is_escaped:
            is_escaped = False
        elif char == "\\" and quote != "'":
            is_escaped = True
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in _OPERATORS:
            return char
    return None
