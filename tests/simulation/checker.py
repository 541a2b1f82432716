"""Holds a history against every invariant."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tests.simulation.history import History
from tests.simulation.invariants import (
    accepting,
    blocking,
    events,
    hints,
    leases,
    lifecycle,
    order,
    outcomes,
    runs,
    undos,
    waiting,
    waits,
)

Invariant = Callable[[History], Iterator[str]]
MOST = 5
"""Examples of what breaks one invariant."""

INVARIANTS: tuple[Invariant, ...] = (
    lifecycle.the_witness_saw_everything,
    lifecycle.nothing_unexpected,
    accepting.accepted_is_stored_once,
    accepting.every_stored_execution_was_requested,
    accepting.a_key_names_one_execution,
    accepting.a_bulk_is_all_or_nothing,
    accepting.unique_scopes_hold,
    accepting.depth_limits_hold,
    lifecycle.executions_never_change,
    lifecycle.one_place_at_a_time,
    lifecycle.every_move_is_allowed,
    lifecycle.exactly_one_end,
    lifecycle.nothing_after_the_end,
    lifecycle.fences_rise,
    leases.leases_are_by_the_databases_clock,
    leases.only_the_dead_and_the_stopped_are_declared_dead,
    leases.an_orderly_leave_counts_no_attempt,
    leases.bodies_belong_to_claims,
    leases.bodies_do_not_overlap,
    outcomes.a_stale_report_changes_nothing,
    outcomes.results_are_of_their_attempt,
    outcomes.one_fenced_effect_per_success,
    outcomes.attempts_and_crashes_are_counted,
    outcomes.nothing_starts_early,
    outcomes.nothing_starts_after_its_deadline,
    outcomes.only_the_late_are_skipped,
    outcomes.nothing_starts_after_a_cancel,
    outcomes.every_cancel_was_requested,
    outcomes.dead_letters_are_the_failed,
    outcomes.a_dead_letter_is_replayed_once,
    hints.every_change_is_hinted_at,
    order.claims_follow_the_rank,
    order.workers_claim_only_jobs_that_they_have,
    order.paused_queues_are_not_claimed_from,
    order.paused_jobs_are_not_claimed,
    blocking.only_waiting_executions_have_blockers,
    blocking.a_wait_does_not_change_the_rank,
    waiting.nothing_waits_beside_a_free_slot,
    waiting.rows_with_a_hint_are_claimed_at_once,
    lifecycle.everything_ends,
    lifecycle.every_worker_has_left,
)

RUNS: tuple[Invariant, ...] = (
    lifecycle.the_witness_saw_everything,
    lifecycle.exactly_one_end,
    lifecycle.one_place_at_a_time,
    lifecycle.nothing_after_the_end,
    *runs.INVARIANTS,
    *waits.INVARIANTS,
    *events.INVARIANTS,
    *undos.INVARIANTS,
)
"""For a world with workflows. Those above then hold for the executions that are neither runs nor waits."""


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that does not hold, and how."""

    invariant: str
    what: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.what}"


def check(history: History) -> list[Violation]:
    """Everything that is wrong with a run; empty is good."""
    found: list[Violation] = []
    if history.has_runs:
        found += _violations(RUNS, history)
        history = runs.without_runs(history)
    return found + _violations(INVARIANTS, history)


def _violations(invariants: Sequence[Invariant], history: History) -> list[Violation]:
    return [
        Violation(invariant.__name__, what)
        for invariant in invariants
        for what in itertools.islice(_judge(invariant, history), MOST)
    ]


def _judge(invariant: Invariant, history: History) -> Iterator[str]:
    try:
        yield from invariant(history)
    except (LookupError, TypeError, ValueError) as error:
        # A history so broken that it cannot even be read.
        yield f"cannot be judged: {error!r}"
