"""How many threads the inbox of the PostgreSQL store wakes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rota.clock import MACHINE
from rota.ops import claim, enqueue
from rota.store.pending_call import LONGEST_PAUSE_S, PendingCall
from rota.store.postgres.inbox import MOST_GROUPS, Inbox


class Started:
    """Counts the threads that an inbox asks for."""

    def __init__(self) -> None:
        self.count = 0
        self.inbox = Inbox(self._start)

    def _start(self) -> None:
        self.count += 1

    def put(self, op: Callable[..., Any]) -> PendingCall:
        call = PendingCall(op, (), {})
        assert self.inbox.put(call)
        return call


def test_calls_that_one_thread_takes_together_wake_one_thread() -> None:
    started = Started()
    first, second, other = started.put(enqueue.enqueue), started.put(enqueue.enqueue), started.put(claim.claim)
    assert started.count == 2
    assert [started.inbox.take(), started.inbox.take()] == [[first, second], [other]]
    started.put(enqueue.enqueue)
    assert started.count == 3


def test_a_call_that_waits_for_running_groups_wakes_no_thread() -> None:
    started = Started()
    running = []
    for _ in range(MOST_GROUPS):
        started.put(enqueue.enqueue)
        running.append(started.inbox.take())
    waiting = started.put(enqueue.enqueue)
    assert started.count == MOST_GROUPS
    started.inbox.done(running[0])
    assert started.inbox.take() == [waiting]


def test_a_postponed_call_does_not_hold_back_a_new_one() -> None:
    started = Started()
    postponed = PendingCall(enqueue.enqueue, (), {})
    postponed.postpone()
    assert started.inbox.put(postponed)
    new = started.put(enqueue.enqueue)
    assert started.count == 2, "a thread for each: the first waits until its call may be tried again"
    assert new in started.inbox.take()


def test_a_call_can_be_postponed_any_number_of_times() -> None:
    """A large submission may hold the keys of another call for minutes."""
    call = PendingCall(enqueue.enqueue, (), {})
    for _ in range(2000):
        call.postpone()
    assert 0 < call.not_before - MACHINE.monotonic() <= LONGEST_PAUSE_S
