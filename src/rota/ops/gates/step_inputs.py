"""Row gate: completes the arguments of steps with the results of earlier steps. A step without its inputs fails.

If the inputs of all claimed steps together are too large, the last steps return to `ready`, for the next claim.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from rota.domain.claim import Claim
from rota.domain.outcome import Error, Failed
from rota.domain.status import Reason
from rota.domain.workflow import template
from rota.domain.workflow.template import TemplateError
from rota.ops import finish
from rota.ops.gates.claim_state import Claiming
from rota.ops.gates.run_info import runs_of_steps
from rota.ops.runs.inputs import TROUBLE, UNDO
from rota.ops.runs.run import Run, graph_of
from rota.ops.runs.values import Values, results_to_undo
from rota.store.port import Tx

MOST_BYTES = 64 * 1024 * 1024
"""The arguments of one step, with the results that they refer to."""
MOST_TOGETHER = 32 * 1024 * 1024
"""After this many bytes of arguments, the remaining steps of the claim return to `ready`. The step that passes the
limit is kept, so one step may be larger (up to `MOST_BYTES`)."""


def step_inputs(claiming: Claiming, taken: list[Claim]) -> list[Claim]:
    steps = [claim for claim in taken if claim.inputs is not None] if claiming.has_steps else []
    if not steps:
        return taken
    templates = {claim.id: msgspec.json.decode(claim.inputs or "{}") for claim in steps}
    values = _values(claiming.tx, runs_of_steps(claiming, taken), steps, templates)
    undos = [id for id, found in templates.items() if UNDO in found]
    undone = results_to_undo(claiming.tx, undos) if undos else {}
    complete: dict[str, Claim] = {}
    broken: list[tuple[Claim, Failed]] = []
    returned: list[Claim] = []
    total = 0
    for claim in steps:
        if total > MOST_TOGETHER:
            returned.append(claim)
            continue
        try:
            complete[claim.id] = _completed(claim, templates[claim.id], values[claim.run or ""], undone)
            total += len(complete[claim.id].arguments)
        except _Broken as error:
            reason = Reason.INPUTS_TOO_LARGE if error.is_too_large else Reason.BAD_ARGUMENTS
            broken.append((claim, Failed(Error("StepInputs", str(error)), reason, permanent=True)))
    if broken:
        worker = claiming.worker
        ended = [(claim.held_by(worker), finish.Finished(claim.id, claim.fence, failed)) for claim, failed in broken]
        finish.settle(claiming.tx, ended)
    claiming.give_back(returned)
    gone = {claim.id for claim in (*returned, *(claim for claim, _ in broken))}
    return [complete.get(claim.id, claim) for claim in taken if claim.id not in gone]


class _Broken(Exception):
    def __init__(self, message: str, *, is_too_large: bool = False) -> None:
        super().__init__(message)
        self.is_too_large = is_too_large


def _values(
    tx: Tx, runs: Mapping[str, Run], steps: list[Claim], templates: Mapping[str, dict[str, Any]]
) -> dict[str, Values]:
    """By run: the values that its claimed steps need, read for all steps of the claim at once."""
    values = {id: Values(tx, id, graph_of(tx, run)) for id, run in runs.items()}
    roots: dict[str, set[str]] = {}
    for claim in steps:
        if not {TROUBLE, UNDO} & templates[claim.id].keys():
            roots.setdefault(claim.run or "", set()).update(template.roots(templates[claim.id]))
    Values.read(tx, [(values[id], wanted) for id, wanted in roots.items()])
    return values


def _completed(claim: Claim, templates: dict[str, Any], values: Values, undone: Mapping[str, Any]) -> Claim:
    if trouble := templates.get(TROUBLE):
        raise _Broken(trouble)
    if (parameter := templates.get(UNDO)) is not None:
        if claim.id not in undone:
            raise _Broken("retention has deleted the result of the step to undo")
        found = {parameter: undone[claim.id]}
    else:
        try:
            found = {name: template.resolve(one, values, values.outcomes) for name, one in templates.items()}
        except TemplateError as error:
            raise _Broken(str(error)) from None
    text = msgspec.json.encode({**msgspec.json.decode(claim.arguments), **found})
    if len(text) > MOST_BYTES:
        raise _Broken(
            f"the arguments with the results of earlier steps are {len(text):,} bytes of JSON; at most "
            f"{MOST_BYTES:,} are handed to a step. Keep large data elsewhere and pass a reference",
            is_too_large=True,
        )
    return msgspec.structs.replace(claim, arguments=text.decode(), inputs=None)
