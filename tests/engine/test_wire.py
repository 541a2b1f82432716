"""What travels between a child and its supervisor comes out as it went in, as far as any decision can tell."""

from __future__ import annotations

import asyncio

import pytest

from rota.domain import payload, retry
from rota.domain.breaker import Breaker
from rota.domain.claim import Claim
from rota.domain.errors import LeaseLost, StoreUnavailable
from rota.domain.lifecycle import Held, Rules, decide
from rota.domain.outcome import Cancelled, Failed, GivenBack, Outcome, Snoozed, Succeeded, TimedOut
from rota.domain.retry import Custom, Exponential, Fixed, Linear, Policy
from rota.domain.status import Reason
from rota.domain.usage import Usage
from rota.engine import wire
from rota.ops.claim import Claimed
from rota.ops.finish import Finished

ERROR = payload.error("ValueError", "no \U0001f4a9", "Traceback …")
HELD = Held("x", 1, 2, 3, 4, 1, 0, 1_000_000, 2_000_000)
OUTCOMES: list[Outcome] = [
    Succeeded('{"a":1}'),
    Failed(ERROR),
    Failed(ERROR, Reason.BAD_RESULT, permanent=True),
    Failed(ERROR, retry_in_s=7.5),
    TimedOut(ERROR),
    TimedOut(ERROR, total=True),
    Cancelled(),
    Snoozed(3.0),
    GivenBack(Reason.UNKNOWN_JOB, 5.0),
]
POLICIES: list[Policy] = [
    retry.NO_RETRY,
    Fixed(attempts=3, delay="5s", only=(ValueError,)),
    Linear(attempts=4, step="1m", cap="90s"),
    Exponential(attempts=9, base=3, factor=1.5, cap="1h", never=(KeyError,)),
    Exponential(attempts=2, jitter=False),
]


def across(finished: Finished) -> Finished:
    frame = wire.call(7, "finish", ([finished],))
    number, verb, (reports,) = wire.read_call(frame[wire.LENGTH :])
    assert (number, verb) == (7, wire.VERBS["finish"])
    return reports[0]  # type: ignore[no-any-return]


@pytest.mark.parametrize("outcome", OUTCOMES, ids=repr)
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
@pytest.mark.parametrize("total_s", [None, 60.0])
def test_a_report_leads_to_the_same_decision(outcome: Outcome, policy: Policy, total_s: float | None) -> None:
    sent = Finished("x", 4, outcome, Rules(retry=policy, timeout_s=1.0, total_timeout_s=total_s), 0.25)
    came = across(sent)
    assert (came.id, came.fence, came.outcome) == (sent.id, sent.fence, sent.outcome)
    now = 3_000_000
    assert decide(HELD, came.outcome, came.rules, now, came.jitter) == decide(HELD, outcome, sent.rules, now, 0.25)


def test_what_a_success_has_to_say_besides_its_result_comes_across() -> None:
    breakers = (Breaker("bank"),)
    sent = [
        Finished("a", 1, Succeeded("1")),
        Finished("b", 2, Succeeded("2"), Rules(breakers=breakers)),
        Finished("c", 3, Succeeded("3"), usage=Usage(cpu_s=1.5, exit_code=0)),
        Finished("d", 4, Failed(ERROR), written="4"),
        Finished("e", 5, Succeeded("5"), written="5"),
    ]
    _, _, (came,) = wire.read_call(wire.call(7, "finish", (sent,))[wire.LENGTH :])
    told = {one.id: one for one in came}
    assert [(told[one.id].fence, told[one.id].outcome) for one in sent] == [(one.fence, one.outcome) for one in sent]
    assert [one.id for one in sent if told[one.id].rules.breakers == breakers] == ["b"]
    assert [one.usage for one in sent] == [told[one.id].usage for one in sent]
    assert [one.id for one in sent if told[one.id].written is not None] == ["d", "e"]


def test_the_answer_of_a_retry_callable_travels_in_the_outcome() -> None:
    policy = Custom(attempts=3, delay_for=lambda attempt, error: 5)
    came = across(Finished("x", 4, Failed(ERROR, retry_in_s=5.0), Rules(retry=policy)))
    assert (came.rules.retry.attempts, came.outcome) == (3, Failed(ERROR, retry_in_s=5.0))


def test_claims_come_back_whole() -> None:
    claimed = Claimed([Claim("x", 1, 2, 1, 0, 0, 3, 3, "send", '{"to":"a"}', None, 3, 3)], frozenset({1, 2}))
    assert wire.read_answer(wire.answer(5, claimed)[wire.LENGTH :], {5: "claim"}) == (5, claimed)


@pytest.mark.parametrize("error", [LeaseLost("gone"), StoreUnavailable("busy"), ValueError("a bug")])
def test_a_failure_comes_back_as_what_it_was(error: Exception) -> None:
    _, came = wire.read_answer(wire.failure(5, error)[wire.LENGTH :], {5: "drain"})
    assert str(came) == str(error)
    assert type(came) is (RuntimeError if isinstance(error, ValueError) else type(error))


async def test_a_stream_that_ends_in_the_middle_of_a_frame_has_ended() -> None:
    stream = asyncio.StreamReader()
    stream.feed_data(wire.call(1, "drain", (3,))[:-1])
    stream.feed_eof()
    assert await wire.read_frame(stream) is None
