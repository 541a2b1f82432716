"""The end of a run: its status, and its result or error."""

from __future__ import annotations

import msgspec

from rota.domain.outcome import Error
from rota.domain.status import Reason, Status
from rota.domain.workflow import advance as decisions
from rota.domain.workflow import letters as alphabet
from rota.domain.workflow import template
from rota.domain.workflow.graph import Graph
from rota.domain.workflow.template import TemplateError
from rota.ops.runs.run import Run
from rota.ops.runs.values import Values
from rota.store.port import Tx
from rota.store.run_reader import bad_items

MOST_RESULT_BYTES = 16 * 1024 * 1024
_decode_error = msgspec.json.Decoder(Error).decode
RunEnd = tuple[Status, Reason, str | None, Error | None]
"""How a run ends: its status, the reason, its result as JSON, and its error."""


def run_result(tx: Tx, run: Run, graph: Graph, letters: str, stopping: str | None, values: Values) -> RunEnd:
    """How a run ends whose steps have all ended."""
    if stopping in (Reason.CANCELLED, Reason.REPLACED):
        return Status.CANCELLED, Reason(stopping), None, None
    if stopping == Reason.RUN_TIMEOUT:
        text = f"the run took longer than its timeout of {graph.timeout:g} s"
        return Status.FAILED, Reason.RUN_TIMEOUT, None, Error("RunTimeout", text)
    if decisions.outcome(graph, letters) is Status.FAILED:
        return Status.FAILED, Reason.STEP_FAILED, None, _first_failure(tx, run, graph, letters)
    outcomes = {step.id: letter for step, letter in zip(graph.steps, letters, strict=True)}
    try:
        value = template.resolve(template.lowered(graph.result, outcomes), values, values.outcomes)
    except TemplateError as error:
        return Status.FAILED, Reason.BAD_RESULT, None, Error("RunResult", str(error))
    encoded = msgspec.json.encode(value)
    if len(encoded) > MOST_RESULT_BYTES:
        words = f"the result of the run is {len(encoded):,} bytes of JSON; at most {MOST_RESULT_BYTES:,} are stored"
        return Status.FAILED, Reason.BAD_RESULT, None, Error("RunResult", words)
    return Status.SUCCESS, Reason.COMPLETED, encoded.decode(), None


def undone_result(tx: Tx, run: Run, graph: Graph, values: Values, undone: Status) -> RunEnd:
    """How a run ends whose undo has ended: as it would have ended without an undo, unless the undo failed.

    `undone` is the status of the undo.
    """
    end = run_result(tx, run, graph, run.letters, run.stopping, values)
    if undone is Status.SUCCESS:
        return end
    status, _, _, error = end
    before = f"the run was {status}" if error is None else error.message
    found = tx.one("error_of", id=run.undo)
    about = "" if found is None or found[0] is None else f": {_decode_error(found[0]).message}"
    return Status.FAILED, Reason.UNDO_FAILED, None, Error("UndoFailed", f"{before}; and its undo {undone}{about}")


def _first_failure(tx: Tx, run: Run, graph: Graph, letters: str) -> Error:
    """Names the first step that failed, with its error."""
    for number, step in enumerate(graph.steps):
        letter = letters[number].lower()
        if letter in (alphabet.FAILED, alphabet.CANCELLED) and not step.may_fail:
            status = "failed" if letter == alphabet.FAILED else "was cancelled"
            first = next(iter(bad_items(tx, run.id, number, (Status.FAILED, Status.CANCELLED), most=1)), None)
            if first is None or first.error is None:
                return Error("StepFailed", f"step {step.id} {status}")
            error, item = _decode_error(first.error), f"item {first.item}: " if first.map_index is not None else ""
            return Error("StepFailed", f"step {step.id} {status}: {item}{error.type}: {error.message}")
    return Error("StepFailed", "a step failed")
