"""Answers to approvals. The first answer wins; a later caller learns who answered what, and when."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from rota.domain.errors import Conflict, UsageError
from rota.domain.instant import MICROSECONDS, rfc3339
from rota.domain.status import TERMINAL
from rota.domain.workflow import letters as alphabet
from rota.domain.workflow import wait as waits
from rota.domain.workflow.graph import Graph
from rota.domain.workflow.wait import Approve, Decision
from rota.ops.audit import audit
from rota.ops.runs.end_waits import end_waits
from rota.ops.runs.run import graph_of, not_open
from rota.store import approval_reader, reader, run_reader
from rota.store.approval_reader import ApprovalRow
from rota.store.port import Tx, View
from rota.store.run_reader import RunRow

MOST_NAMED = 5
_decision = msgspec.json.Decoder(Decision).decode
_approve = msgspec.json.Decoder(Approve).decode


class Answer(msgspec.Struct, frozen=True):
    """An answer to an approval. With `step` None it is for the only open approval of the run."""

    approved: bool
    by: str
    note: str = ""
    step: str | None = None


class _Open(msgspec.Struct, frozen=True, array_like=True):
    """An open approval: a step that waits for an answer."""

    run: str
    execution: str
    number: int
    arguments: str


def answer(tx: Tx, namespace: str, id: str, given: Answer) -> str:
    """Answers an approval of the run, and returns the name of its step."""
    row, graph = _opened_run(tx, namespace, id)
    found = {graph.steps[one.number].id: one for one in tx.records("open_approvals", _Open, runs=[row.id])}
    name = _only(tx, row, graph, found) if given.step is None else given.step
    if name not in found:
        raise _refusal(tx, row, graph, name)
    if not _end(tx, found[name].execution, found[name].arguments, given):
        raise _refusal(tx, row, graph, name)
    _record(tx, row, name, given)
    return name


def answer_one(tx: Tx, namespace: str, id: str, given: Answer, names: Collection[str] | None) -> None:
    """Answers the approval that the execution `id` is. `names` are those of the caller; None if it may answer all."""
    asked = approval_reader.approval(tx, namespace, id)
    who = _approve(asked.arguments).who
    if names is not None and who and not set(who) & set(names):
        raise NotAsked(f"the answer is asked of {', '.join(who)}, and {given.by} is none of them")
    row, graph = _opened_run(tx, namespace, asked.run)
    if not _end(tx, id, asked.arguments, given):
        raise _decided(approval_reader.approval(tx, namespace, id), _state(tx, row, graph, graph.steps[asked.step].id))
    _record(tx, row, graph.steps[asked.step].id, given)


class NotAsked(Conflict):
    """The approval names who may answer it, and the caller is not among them."""

    code = "not_asked"


class AlreadyDecided(Conflict):
    """Another answer was first."""

    code = "already_decided"

    def __init__(self, text: str, decision: Decision, at: int) -> None:
        super().__init__(text)
        self.decision, self.at = decision, at


def _end(tx: Tx, execution: str, arguments: str, given: Answer) -> bool:
    decision = Decision(given.approved, str(given.by), given.note)
    return bool(end_waits(tx, {execution: waits.answered(_approve(arguments), decision)}))


def _record(tx: Tx, row: RunRow, step: str, given: Answer) -> None:
    action = "run.approve" if given.approved else "run.reject"
    audit(tx, row.namespace, given.by, action, row.id, after={"step": step, "note": given.note})


def _decided(row: ApprovalRow, text: str) -> Conflict:
    if row.result is None or row.finished_at is None:
        return Conflict(text)
    return AlreadyDecided(text, _decision(row.result), row.finished_at)


def _opened_run(view: View, namespace: str, id: str) -> tuple[RunRow, Graph]:
    """A run that has been opened, whether it has ended or not."""
    row = run_reader.run(view, namespace, id)
    if row is None:
        raise reader.unknown(id)
    if not row.letters or not row.graph:
        raise not_open(id, row.status)
    return row, graph_of(view, row)


def _only(view: View, row: RunRow, graph: Graph, found: dict[str, _Open]) -> str:
    """The name of the only open approval. Raises an error if there is none, or more than one."""
    if len(found) == 1:
        return next(iter(found))
    if found:
        listed = ", ".join(f"{name} ({_approve(one.arguments).text})" for name, one in found.items())
        raise UsageError(f"run {row.id} waits for {len(found)} answers, so name the step: {listed}")
    below = [run for (run,) in view.rows("runs_below", id=row.id) if run != row.id]
    if deeper := view.records("open_approvals", _Open, runs=below)[:MOST_NAMED] if below else []:
        listed = ", ".join(dict.fromkeys(one.run for one in deeper))
        raise UsageError(f"run {row.id} waits for no answer itself, but runs below it do: {listed}")
    states = [_state(view, row, graph, step.id) for step in graph.steps if step.approve is not None]
    raise Conflict(f"run {row.id} waits for no answer: {'; '.join(states) or 'it has no approval'}")


def _refusal(view: View, row: RunRow, graph: Graph, name: str) -> Exception:
    """The error that says why this step cannot be answered."""
    approvals = [step.id for step in graph.steps if step.approve is not None]
    if name not in graph.numbers:
        return UsageError(f"run {row.id} has no step {name!r}: {_listed(approvals)}")
    if name not in approvals:
        return UsageError(f"step {name!r} is not an approval: {_listed(approvals)}")
    return Conflict(f"run {row.id}: {_state(view, row, graph, name)}")


def _listed(approvals: list[str]) -> str:
    return f"its approvals are {', '.join(approvals)}" if approvals else "it has no approvals"


def _state(view: View, row: RunRow, graph: Graph, name: str) -> str:
    """The state of an approval that is not open, in words."""
    number = graph.numbers[name]
    ended = view.one("end_of_step", run=row.id, number=number)
    if ended is None:
        letter = row.letters[number]
        may_be_reached = letter == alphabet.UNDECIDED and row.status not in TERMINAL
        return f"step {name} has not been reached yet" if may_be_reached else f"step {name} was never reached"
    status, result, finished_at = ended
    if result is None:
        return f"step {name} ended as {status} at {rfc3339(_second(finished_at))}"
    decision = _decision(result)
    word = "approved" if decision.approved else "rejected"
    if decision.timed_out:
        return f"step {name} was {word} at {rfc3339(_second(finished_at))}, because no answer came in time"
    note = f" ({decision.note})" if decision.note else ""
    return f"step {name} was {word} by {decision.by} at {rfc3339(_second(finished_at))}{note}"


def _second(at: int) -> int:
    """The instant without its fraction of a second."""
    return at // MICROSECONDS * MICROSECONDS
