"""Why an execution is not running: every check that a claim makes, in order, and one sentence.

A claim takes the lowest rank of a lane whose job and queue are not paused and whose breakers are closed, for a live
worker of the app that serves the queue, has the job and has what the job needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from rota.domain import blocker, duration, requirement
from rota.domain.blocker import Kind
from rota.domain.breaker import UNTIL_CLOSED
from rota.domain.instant import MICROSECONDS, moment
from rota.domain.status import TERMINAL, Status
from rota.domain.workflow import wait as waits
from rota.domain.workflow.graph import Step
from rota.domain.workflow.letters import OPEN
from rota.ops.runs.run import graph_of
from rota.store import claim_reader, reader, run_reader
from rota.store.claim_reader import MOST_COUNTED, ClaimFacts
from rota.store.port import View
from rota.store.run_reader import RunRow
from rota.views.shape import Shape
from rota.views.wait import sentence, wait_info

PLACE = "place"
API = "/api/v1"
MOST_NAMED = 5
"""How many open steps of a run are named."""
_AFTER = {"snoozed": " (snoozed)", "not_begun": " (no process could be started for it: its last attempt says why)"}
_WAITED_FOR = {Kind.SLEEP: "the end of a sleep: ", Kind.APPROVAL: "an answer: ", Kind.EVENT: "an event: "}
_blockers = msgspec.json.Decoder(list[tuple[Kind, str]])
_circuits = msgspec.json.Decoder(list[tuple[str, int]])
_offers = msgspec.json.Decoder(list[str])
_troubles = msgspec.json.Decoder(list[tuple[str, str]])
_reasons = msgspec.json.Decoder(dict[str, str])


class Remedy(Shape, frozen=True):
    """What to do, and the command and the request that do it."""

    text: str
    """What helps, in words."""
    command: str | None
    """The command that helps; null if there is none."""
    method: str | None = None
    """The method of the request that helps; null if there is none."""
    path: str | None = None
    """The path of the request that helps; null if there is none."""


class WhyCheck(Shape, frozen=True):
    """One condition of a claim. `holds` is false if it stands in the way, null if it is not known.

    `evidence` are the values that say so; which ones depends on the code.
    """

    code: str
    holds: bool | None
    """Whether the check allows a start."""
    text: str
    subject: str | None = None
    """What the check is about, such as the queue; null if nothing in particular."""
    until: datetime | None = None
    remedy: Remedy | None = None
    """What helps; null if nothing has to be done."""
    evidence: dict[str, Any] | None = None
    """The values that the check read."""

    @property
    def sentence(self) -> str:
        return self.text if self.remedy is None else f"{self.text}: {self.remedy.text}"


class Why(Shape, frozen=True):
    """Why an execution is not running, in a sentence and check by check."""

    text: str
    """The first check that does not hold, in words."""
    checks: list[WhyCheck]
    """Every check that a claim makes, in its order."""

    @property
    def is_in_line(self) -> bool:
        """Whether the execution waits only for a free slot, which may come at any moment."""
        return all(check.holds is not False or check.code == PLACE for check in self.checks)


def why(view: View, namespace: str, id: str) -> Why | None:
    """None if there is nothing to explain: it has ended, or it runs undisturbed. An open run waits for its steps."""
    facts = claim_reader.claim_facts(view, namespace, id)
    if facts.status is Status.RUNNING and facts.lease_until is None:
        row = run_reader.run(view, namespace, id)
        return None if row is None or not row.letters else _of_run(view, row)
    if facts.status is Status.WAITING and waits.is_wait(facts.job):
        return _of_wait(view, namespace, id)
    found = explain(facts, view.now)
    if found is not None and facts.status is not Status.RUNNING and (step := _of_step(view, namespace, id)) is not None:
        checks = [step if check.code == step.code and check.holds else check for check in found.checks]
        found = Why(text=step.sentence if step.holds is False else found.text, checks=checks)
    return found


def first_codes(view: View, namespace: str, ids: Sequence[str]) -> dict[str, str]:
    """The code of the first check that holds each of these pending executions back, if there is one."""
    codes = {}
    for facts in claim_reader.claim_facts_of(view, namespace, ids, most_ahead=1):
        found = explain(facts, view.now)
        failing = [] if found is None else [check.code for check in found.checks if check.holds is False]
        if failing:
            codes[facts.id] = failing[0]
    return codes


def explain(facts: ClaimFacts, now: int) -> Why | None:
    if facts.status in TERMINAL:
        return None
    if facts.status is Status.RUNNING:
        checks = [_lease(facts, now), _cancel_requested(facts, now)]
        disturbed = [check.text for check in checks if not check.holds]
        return Why(text=disturbed[0], checks=checks) if disturbed else None
    checks = [check(facts, now) for check in _CHECKS]
    return Why(text=_sentence(facts, checks), checks=checks)


def _sentence(facts: ClaimFacts, checks: list[WhyCheck]) -> str:
    due, *between, place = checks
    in_the_way = next((check.sentence for check in between if check.holds is False), "")
    match facts.status:
        case Status.WAITING:
            return in_the_way
        case Status.QUEUED:
            return (
                f"{in_the_way}; {place.text}" if in_the_way else f"{place.text}; waits for {_free(facts)} of a worker"
            )
        case _:
            return f"{due.text}; {in_the_way or 'about to be queued'}" if due.holds else due.text


# --- Runs and their steps -------------------------------------------------------------------------


def _of_run(view: View, row: RunRow) -> Why:
    """What an open run waits for."""
    checks = [_run_paused(row, row.id), _run_stopping(row), _run_undoing(row), _run_steps(view, row)]
    return Why(text="; ".join(check.sentence for check in checks if check.holds is False), checks=checks)


def _of_wait(view: View, namespace: str, id: str) -> Why | None:
    """What a wait waits for. A pause of its run does not hold back the wait, but the steps after it."""
    row, place = reader.execution(view, namespace, id), run_reader.place_in_run(view, namespace, id)
    above = None if place is None else run_reader.run(view, namespace, place[0])
    if place is None or place[1] is None or above is None or not above.graph:
        return None
    info = wait_info(row, None, above.id, graph_of(view, above).steps[place[1]].id)
    paused = _of_step(view, namespace, id)
    if info is None or paused is None:
        return None
    commands = " or ".join(f"`{one}`" for one in info.commands)
    remedy = None
    if info.commands:
        path = f"{API}/approvals/{id}/approve"
        remedy = Remedy(text=commands, command=info.commands[0], method="POST", path=path)
    evidence = {"kind": info.kind, "since": info.since, "who": info.who}
    check = WhyCheck("wait", False, sentence(info, moment(view.now)), id, info.until, remedy, evidence)
    return Why(text=check.sentence, checks=[paused, check])


def _of_step(view: View, namespace: str, id: str) -> WhyCheck | None:
    """Whether the run of a step, or a run above it, is paused; None if the execution is not a step."""
    place = run_reader.place_in_run(view, namespace, id)
    if place is None:
        return None
    rows = run_reader.runs(view, namespace, run_reader.ancestors(view, place[0]))
    return _run_paused(next((row for row in rows if row.paused_at is not None), None), place[0])


def _run_paused(row: RunRow | None, id: str) -> WhyCheck:
    if row is None or row.paused_at is None:
        return WhyCheck("run_paused", True, "the run is not paused", id)
    which = "the run" if row.id == id else f"run {row.id}"
    words = f"{which} is paused{_by(row.paused_by, row.paused_note)}"
    remedy = _command(f"rota run resume {row.id}", f"/runs/{row.id}/resume")
    return WhyCheck("run_paused", False, words, row.id, None, remedy, _paused(row))


def _run_stopping(row: RunRow) -> WhyCheck:
    if row.stopping is None:
        return WhyCheck("run_stopping", True, "the run is not stopping", row.id)
    return WhyCheck("run_stopping", False, f"the run is stopping ({row.stopping})", row.id)


def _run_undoing(row: RunRow) -> WhyCheck:
    if row.undo is None:
        return WhyCheck("run_undoing", True, "the run is not undoing", row.id)
    return WhyCheck("run_undoing", False, f"the run is undoing: it waits for run {row.undo}", row.undo)


def _run_steps(view: View, row: RunRow) -> WhyCheck:
    graph, tallies = graph_of(view, row), run_reader.tallies(view, row.id)
    words = []
    for number, step in enumerate(graph.steps):
        if row.letters[number] == OPEN:
            tally = tallies.get(number)
            ended = f" ({tally.width - tally.open:,} of {tally.width:,} items have ended)" if tally else ""
            words.append(_waited_for(step) + step.id + ended)
    if not words:
        return WhyCheck("steps", True, "no step of the run is open", row.id)
    more = f" and {len(words) - MOST_NAMED:,} more" if len(words) > MOST_NAMED else ""
    return WhyCheck("steps", False, f"waits for {', '.join(words[:MOST_NAMED])}{more}", row.id)


def _waited_for(step: Step) -> str:
    return "" if step.wait is None else _WAITED_FOR[waits.kind_of(step.wait).blocker]


# --- The checks ----------------------------------------------------------------------------------


def _due(facts: ClaimFacts, now: int) -> WhyCheck:
    if facts.due_at is None:
        return WhyCheck("due", True, "it is due")
    if facts.due_at <= now:
        return WhyCheck("due", True, f"due {_length(now - facts.due_at)} ago")
    kind = "to be tried again" if facts.status is Status.RETRYING else "scheduled to start"
    words = f"{kind} in {_length(facts.due_at - now)}{_AFTER.get(facts.reason, '')}"
    remedy = Remedy(
        text=f"`rota run-now {facts.id}`",
        command=f"rota run-now {facts.id}",
        method="PATCH",
        path=f"{API}/executions/{facts.id}",
    )
    at = moment(facts.due_at)
    return WhyCheck("due", False, words, facts.id, at, remedy, {"runAt": at, "reason": facts.reason or None})


def _job_paused(facts: ClaimFacts, now: int) -> WhyCheck:
    name = f"{facts.app}.{facts.job}"
    if facts.job_paused_at is not None:
        words = f"job {name} is paused{_by(facts.job_paused_by, facts.job_paused_note)}"
        remedy = _command(f"rota jobs resume {facts.job}", f"/jobs/{facts.job}/resume?app={facts.app}")
        evidence = _pause(facts.job_paused_at, facts.job_paused_by, facts.job_paused_note)
        return WhyCheck("job_paused", False, words, name, None, remedy, evidence)
    for kind, key in _blockers.decode(facts.blockers or "[]"):
        if kind is Kind.JOB_PAUSED:
            return WhyCheck("job_paused", False, f"waits for {blocker.words(kind, key)}", name)
    return WhyCheck("job_paused", True, f"job {name} is not paused", name)


def _queue_paused(facts: ClaimFacts, now: int) -> WhyCheck:
    if facts.paused_at is None:
        return WhyCheck("queue_paused", True, f"queue {facts.queue} is not paused", facts.queue)
    words = f"queue {facts.queue} is paused{_by(facts.paused_by, facts.paused_note)}"
    remedy = _command(f"rota queues resume {facts.queue}", f"/queues/{facts.queue}/resume")
    evidence = _pause(facts.paused_at, facts.paused_by, facts.paused_note)
    return WhyCheck("queue_paused", False, words, facts.queue, None, remedy, evidence)


def _breaker(facts: ClaimFacts, now: int) -> WhyCheck:
    wanted = requirement.breakers(facts.requirements or "")
    for name, retry_at in sorted(_circuits.decode(facts.circuits or "[]")):
        if name in wanted and retry_at >= UNTIL_CLOSED:
            words = f"breaker {name} was opened by an operator: nothing tries until it is closed"
            remedy = _command(f"rota breakers close {name}", f"/breakers/{name}/close")
            return WhyCheck("breaker", False, words, name, remedy=remedy)
        if name in wanted:
            when = f"in {_length(retry_at - now)}" if retry_at > now else "now"
            words = f"breaker {name} is open after failures: one execution tries {when}"
            at = moment(retry_at)
            return WhyCheck("breaker", False, words, name, at, evidence={"retryAt": at})
    return WhyCheck("breaker", True, "no breaker that it relies on is open")


def _worker_serves(facts: ClaimFacts, now: int) -> WhyCheck:
    evidence = {"app": facts.app, "queue": facts.queue, "liveWorkers": facts.live_workers, **_needed(facts)}
    if facts.live_workers:
        words = f"a live worker of app {facts.app} serves queue {facts.queue}"
        return WhyCheck("worker", True, words, facts.queue, evidence=evidence)
    wanted = requirement.words(facts.requirements or "")
    needed = f", and it needs {wanted}" if wanted else ""
    words = f"no live worker of app {facts.app} serves queue {facts.queue}{needed}"
    return WhyCheck("worker", False, words, facts.queue, None, _start(wanted), evidence)


def _worker_has_job(facts: ClaimFacts, now: int) -> WhyCheck:
    if not facts.live_workers:
        return WhyCheck("worker_has_job", None, "no worker to look at", facts.job)
    if _offered(facts):
        return WhyCheck("worker_has_job", True, f"a live worker has the job {facts.job}", facts.job)
    remedy = Remedy(text="start a worker whose code has the job, and which offers what the job needs", command=None)
    return WhyCheck("worker_has_job", False, f"no live worker has the job {facts.job}", facts.job, remedy=remedy)


def _worker_fits(facts: ClaimFacts, now: int) -> WhyCheck:
    wanted = requirement.words(facts.requirements or "")
    if not _offered(facts):
        return WhyCheck("worker_fits", None, "no worker to look at")
    if any(requirement.fits(facts.requirements or "", one) for one in _offered(facts)):
        return WhyCheck("worker_fits", True, "a live worker has what it needs")
    words = f"no live worker has what it needs ({wanted})"
    return WhyCheck("worker_fits", False, words, remedy=_start(wanted), evidence={"needs": wanted, **_needed(facts)})


def _worker_starts(facts: ClaimFacts, now: int) -> WhyCheck:
    """Whether a worker that it fits can start the process that it needs."""
    wanted, reasons = facts.requirements or "", []
    for offers, trouble in _troubles.decode(facts.troubles or "[]"):
        if requirement.fits(wanted, offers):
            reasons.append(_reasons.decode(trouble).get(requirement.processes(wanted), ""))
    if not reasons:
        return WhyCheck("worker_starts", None, "no worker to look at")
    if all(reasons):
        words = f"no live worker can start a process for it: {reasons[0]}"
        return WhyCheck("worker_starts", False, words, evidence={"reasons": sorted(set(reasons))})
    return WhyCheck("worker_starts", True, "a live worker can start what it needs")


def _slot(facts: ClaimFacts, now: int) -> WhyCheck:
    return WhyCheck("slot", None, f"a worker takes it as soon as it has {_free(facts)}")


def _place(facts: ClaimFacts, now: int) -> WhyCheck:
    if facts.status is not Status.QUEUED:
        return WhyCheck(PLACE, None, "it has no place in line yet")
    if not facts.ahead:
        return WhyCheck(PLACE, True, "next in line")
    is_capped = facts.ahead > MOST_COUNTED
    ahead = min(facts.ahead, MOST_COUNTED)
    words = f"queued behind {'more than ' if is_capped else ''}{ahead:,}"
    return WhyCheck(PLACE, False, words, evidence={"ahead": ahead, "isCapped": is_capped})


def _behind(code: str, kinds: Sequence[Kind], otherwise: str) -> Callable[[ClaimFacts, int], WhyCheck]:
    """A check for blockers of these kinds."""

    def check(facts: ClaimFacts, now: int) -> WhyCheck:
        found = [(kind, key) for kind, key in _blockers.decode(facts.blockers or "[]") if kind in kinds]
        if not found:
            return WhyCheck(code, True, otherwise)
        words = f"waits for {' and '.join(blocker.words(*one) for one in found)}"
        return WhyCheck(code, False, words, found[0][1], evidence={"waitsFor": [key for _, key in found]})

    return check


_CHECKS = (
    _due,
    _behind("dependencies", [Kind.DEPENDENCY], "it waits for no other job"),
    _behind("event", [Kind.EVENT, Kind.SLEEP], "it waits for no event"),
    _behind("approval", [Kind.APPROVAL], "it waits for no answer"),
    _behind("run_paused", [Kind.RUN_PAUSED, Kind.RUN], "no paused run holds it"),
    _behind("map", [Kind.MAP], "it waits for no earlier items of a map"),
    _job_paused,
    _queue_paused,
    _breaker,
    _behind("limits", [Kind.LIMIT, Kind.RATE], "it waits for no limit"),
    _worker_serves,
    _worker_has_job,
    _worker_fits,
    _worker_starts,
    _slot,
    _place,
)


def _lease(facts: ClaimFacts, now: int) -> WhyCheck:
    if facts.lease_until is None or facts.lease_until > now:
        return WhyCheck("lease", True, "the lease of its worker is live")
    gone = _length(now - facts.lease_until)
    return WhyCheck(
        "lease", False, f"the lease of its worker ran out {gone} ago: any live worker will give it to another"
    )


def _cancel_requested(facts: ClaimFacts, now: int) -> WhyCheck:
    if facts.cancel_at is None:
        return WhyCheck("cancel_requested", True, "it was not asked to stop")
    return WhyCheck("cancel_requested", False, f"asked to stop {_length(now - facts.cancel_at)} ago")


def _free(facts: ClaimFacts) -> str:
    """A worker may have many free slots and no free process for another isolated job."""
    is_isolated = requirement.processes(facts.requirements or "") == requirement.ISOLATED
    return "a free isolated process" if is_isolated else "a free slot"


def _offered(facts: ClaimFacts) -> list[str]:
    return _offers.decode(facts.offers or "[]")


def _start(wanted: str) -> Remedy:
    how = "`rota worker --pool`, `--tag` or `--resource`" if wanted else "`rota worker`"
    return Remedy(text=f"start one with {how}", command="rota worker")


def _needed(facts: ClaimFacts) -> dict[str, Any]:
    """The offers that a worker must have, to be compared with those of the live workers."""
    needs = requirement.decode(facts.requirements or "")
    return {"pool": needs.pool, "tags": needs.tags, "resources": needs.resources}


def _command(words: str, path: str) -> Remedy:
    return Remedy(text=f"`{words}`", command=words, method="POST", path=API + path)


def _pause(at: int | None, by: str | None, note: str | None) -> dict[str, Any]:
    return {"at": None if at is None else moment(at), "by": by, "note": note}


def _paused(row: RunRow) -> dict[str, Any]:
    return _pause(row.paused_at, row.paused_by, row.paused_note)


def _by(actor: str | None, note: str | None) -> str:
    return (f" by {actor}" if actor else "") + (f" ({note})" if note else "")


def _length(microseconds: int) -> str:
    return duration.words(max(0, microseconds) / MICROSECONDS)
