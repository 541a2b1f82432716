"""The inputs of a step: the arguments that are results of other steps, by reference.

A step is placed with the literal part of its arguments, and with its references as JSON. Nothing is copied. When the
step is claimed, the row gate `step_inputs` reads the values and completes the arguments. The input of an undo is the
result of the step that it undoes.
"""

from __future__ import annotations

from typing import Any

import msgspec

from rota.domain.workflow import template

TROUBLE = "$trouble"
"""The member that says why the arguments of a step cannot be made."""
UNDO = "$undo"
"""The member that names the parameter of an undo which takes the result of the undone step."""


class Inputs(msgspec.Struct, frozen=True):
    """The arguments of a step: those that are known, and the templates of the others."""

    known: dict[str, Any]
    open: dict[str, Any]
    trouble: str = ""
    undo: str = ""

    @classmethod
    def of(cls, arguments: dict[str, Any]) -> Inputs:
        """`arguments` are lowered templates."""
        later = {name: value for name, value in arguments.items() if not template.is_literal(value)}
        known = {name: template.resolve(value, _none) for name, value in arguments.items() if name not in later}
        return cls(known, later)

    @classmethod
    def broken(cls, trouble: str) -> Inputs:
        """The inputs of a step that fails because its arguments cannot be made."""
        return cls({}, {}, trouble)

    @classmethod
    def undoing(cls, parameter: str) -> Inputs:
        """The inputs of an undo: the parameter takes the result of the step that it undoes."""
        return cls({}, {}, undo=parameter)

    def literals(self, more: dict[str, Any] | None = None) -> str:
        """The known arguments and `more`, as JSON text."""
        return msgspec.json.encode({**self.known, **(more or {})}).decode()

    def references(self) -> str | None:
        """The templates as JSON text; None if there are none."""
        if self.trouble:
            return msgspec.json.encode({TROUBLE: self.trouble}).decode()
        if self.undo:
            return msgspec.json.encode({UNDO: self.undo}).decode()
        return msgspec.json.encode(self.open).decode() if self.open else None


def _none(root: str) -> Any:
    raise AssertionError(f"a literal refers to {root}")
