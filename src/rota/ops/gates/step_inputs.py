"""Row gate: completes the arguments of steps with the results of earlier steps. A step without its inputs fails."""

from __future__ import annotations

from typing import Any

import msgspec

from rota.domain.claim import Claim
from rota.domain.outcome import Error, Failed
from rota.domain.status import Reason
from rota.domain.workflow import template
from rota.domain.workflow.template import TemplateError
from rota.ops import finish
from rota.ops.gates.claim_state import Claiming
from rota.ops.runs.inputs import TROUBLE, UNDO
from rota.ops.runs.run import Run, graph_of
from rota.ops.runs.values import Values, results_to_undo

MOST_BYTES = 64 * 1024 * 1024
"""The arguments of one step, with the results that they refer to."""


def step_inputs(claiming: Claiming, taken: list[Claim]) -> list[Claim]:
    steps = [claim for claim in taken if claim.inputs is not None]
    if not steps:
        return taken
    reader = _Reader(claiming, [claim.id for claim in steps if _is_undo(claim)])
    complete: dict[str, Claim] = {}
    broken: list[tuple[Claim, Failed]] = []
    for claim in steps:
        try:
            complete[claim.id] = reader.completed(claim)
        except _Broken as error:
            reason = Reason.INPUTS_TOO_LARGE if error.is_too_large else Reason.BAD_ARGUMENTS
            broken.append((claim, Failed(Error("StepInputs", str(error)), reason, permanent=True)))
    if broken:
        worker = claiming.worker
        ended = [(claim.held_by(worker), finish.Finished(claim.id, claim.fence, failed)) for claim, failed in broken]
        finish.settle(claiming.tx, ended)
    failed = {claim.id for claim, _ in broken}
    return [complete.get(claim.id, claim) for claim in taken if claim.id not in failed]


def _is_undo(claim: Claim) -> bool:
    return claim.inputs is not None and f'"{UNDO}"' in claim.inputs


class _Broken(Exception):
    def __init__(self, message: str, *, is_too_large: bool = False) -> None:
        super().__init__(message)
        self.is_too_large = is_too_large


class _Reader:
    """Reads each value once for a whole batch."""

    def __init__(self, claiming: Claiming, undos: list[str]) -> None:
        self._tx = claiming.tx
        self._values: dict[str, Values] = {}
        self._undone = results_to_undo(claiming.tx, undos) if undos else {}

    def completed(self, claim: Claim) -> Claim:
        templates = msgspec.json.decode(claim.inputs or "{}")
        if trouble := templates.get(TROUBLE):
            raise _Broken(trouble)
        if (parameter := templates.get(UNDO)) is not None:
            if claim.id not in self._undone:
                raise _Broken("the result of the step to undo is deleted by now")
            found = {parameter: self._undone[claim.id]}
        else:
            found = self._resolved(claim.run or "", templates)
        text = msgspec.json.encode({**msgspec.json.decode(claim.arguments), **found})
        if len(text) > MOST_BYTES:
            raise _Broken(
                f"the arguments with the results of earlier steps are {len(text):,} bytes of JSON; at most "
                f"{MOST_BYTES:,} are handed to a step. Keep large data elsewhere and pass a reference",
                is_too_large=True,
            )
        return msgspec.structs.replace(claim, arguments=text.decode(), inputs=None)

    def _resolved(self, run: str, templates: dict[str, Any]) -> dict[str, Any]:
        value = self._value(run)
        try:
            return {name: template.resolve(one, value, value.outcomes) for name, one in templates.items()}
        except TemplateError as error:
            raise _Broken(str(error)) from None

    def _value(self, run: str) -> Values:
        if run not in self._values:
            (row,) = self._tx.records("run_open", Run, id=run)
            self._values[run] = Values(self._tx, run, graph_of(self._tx, row))
        return self._values[run]
