"""Beginning a step that waits: its execution is placed in `waiting`, behind a blocker that only its end removes.

No worker claims the execution. So the wait begins in the transaction that decides that the step starts, whether or not
a worker is free. It also begins in a run that is paused: a pause holds back work, and a wait does no work. When its
time is over, upkeep ends it by its row in `expiry`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from rota import ids
from rota.domain import event_filter
from rota.domain.duration import seconds
from rota.domain.errors import DefinitionError
from rota.domain.event import check_subject
from rota.domain.instant import MICROSECONDS
from rota.domain.outcome import Error
from rota.domain.status import Reason, Status
from rota.domain.workflow import edges, template
from rota.domain.workflow import letters as alphabet
from rota.domain.workflow import wait as waits
from rota.domain.workflow.graph import Graph, Step
from rota.domain.workflow.template import TemplateError
from rota.domain.workflow.wait import Approve, AwaitEvent, Ending, Wait
from rota.ops.events.waits import EventWait, subscribe
from rota.ops.place import Batch, Origin, Route, StepOf
from rota.ops.runs.run import Run, pinned
from rota.ops.runs.values import Values
from rota.store.port import Tx


class Begun(msgspec.Struct, frozen=True):
    """A wait to place. `ending` says how it ends in the same transaction; None if it has to wait."""

    id: str
    batch: Batch
    ends_at: int
    """When its time is over."""
    ending: Ending | None


def begin(
    tx: Tx,
    run: Run,
    graph: Graph,
    number: int,
    letters: Mapping[str, str],
    values: Values,
    lane: tuple[str, int],
) -> Begun:
    """Begins the wait of a step. `letters` has those of all steps by name; `lane` is the queue and lane of the run."""
    step = graph.steps[number]
    assert step.wait is not None
    id = ids.named(tx.now, f"{run.id}/{number}")
    ending: Ending | None = None
    try:
        wanted = _resolved(step, letters, values)
    except TemplateError as error:
        wanted = step.wait
        ending = Ending(Status.FAILED, Reason.BAD_ARGUMENTS, None, Error("StepInputs", str(error)))
    if isinstance(wanted, AwaitEvent) and ending is None:
        event = subscribe(tx, _event_wait(run, graph, number, id, wanted, letters, values))
        ending = None if event is None else waits.event_came(event)
    ends_at = waits.ends_at(wanted, tx.now)
    deadline = ends_at if ending is None else None
    return Begun(id, _batch(tx, run, lane, number, id, wanted, deadline), ends_at, ending)


def _resolved(step: Step, letters: Mapping[str, str], values: Values) -> Wait:
    """What the step waits for, with the values of earlier steps in place of templates. Raises a TemplateError."""

    def value(one: Any) -> Any:
        return template.resolve(template.lowered(one, letters), values, values.outcomes)

    def text(one: Any, what: str) -> str:
        found = value(one)
        if not isinstance(found, str):
            raise TemplateError(f"{what} is {template.kind(found)}, not a text")
        return found

    match step.wait:
        case Approve() as approve:
            return msgspec.structs.replace(approve, text=text(approve.text, "the text"))
        case AwaitEvent() as event:
            subject = None if event.subject is None else _subject(text(event.subject, "the subject"))
            where = None if event.where is None else event_filter.with_explicit_eq(event.where)
            return msgspec.structs.replace(event, subject=subject, where=value(where))
        case sleep:
            assert sleep is not None
            return sleep


def _subject(found: str) -> str:
    """Refuses a subject that no event can have. An empty subject would match the events of every subject."""
    try:
        return check_subject(found)
    except DefinitionError as error:
        raise TemplateError(str(error)) from None


def _event_wait(
    run: Run, graph: Graph, number: int, id: str, wanted: AwaitEvent, letters: Mapping[str, str], values: Values
) -> EventWait:
    return EventWait(
        execution=id,
        namespace=run.namespace,
        names=wanted.names,
        subject=wanted.subject,
        where=wanted.where,
        since=run.opened_at - round(seconds(wanted.lookback or 0) * MICROSECONDS),
        taken=_taken(graph, number, letters, values),
    )


def _taken(graph: Graph, number: int, letters: Mapping[str, str], values: Values) -> tuple[str, ...]:
    """The ids of the events that waits upstream of this one took. It does not take them again."""
    upstream = [graph.steps[one] for one in sorted(edges.of(graph).above(number))]
    waited = [step.id for step in upstream if step.event is not None]
    return tuple(values(name)["id"] for name in waited if letters[name].lower() == alphabet.SUCCESS)


def _batch(tx: Tx, run: Run, lane: tuple[str, int], number: int, id: str, wanted: Wait, deadline: int | None) -> Batch:
    kind, about = waits.kind_of(wanted), pinned(run.pinned)
    # The lane only decides in which queue the execution is counted: no claim takes rows of `waiting`.
    route = Route(run.namespace, run.app, kind.job, lane[0], run.version, lane[1])
    return Batch(
        {id: msgspec.json.encode(wanted).decode()},
        route,
        Origin(actor=about.actor, parent=run.id, trace=about.trace, headers=about.headers),
        about.priority or 0,
        tx.now,
        deadline=deadline,
        blockers=((kind.blocker, run.id),),
        step=StepOf(run.id, number),
    )
