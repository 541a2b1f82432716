"""Values of the domain, as hypothesis draws them."""

from __future__ import annotations

from hypothesis import strategies as st

from rota.domain import retry
from rota.domain.lifecycle import Held, Rules
from rota.domain.outcome import (
    Cancelled,
    Error,
    Expired,
    Failed,
    GivenBack,
    Lost,
    Outcome,
    Snoozed,
    Succeeded,
    TimedOut,
)
from rota.domain.status import Reason

NOW = 1_767_225_600_000_000
ERROR = Error("ValueError", "boom")

instants = st.integers(min_value=0, max_value=4_000_000_000_000_000)
delays_s = st.floats(min_value=0, max_value=1e6)
jitters = st.floats(min_value=0, max_value=1, exclude_max=True)
attempts = st.integers(min_value=1, max_value=retry.MOST_ATTEMPTS)

fixed = st.builds(retry.Fixed, attempts=attempts, delay=delays_s)
linear = st.builds(retry.Linear, attempts=attempts, step=delays_s, cap=delays_s)
exponential = st.builds(
    retry.Exponential,
    attempts=attempts,
    base=delays_s,
    factor=st.floats(min_value=1, max_value=100),
    cap=delays_s,
    jitter=st.booleans(),
)
policies: st.SearchStrategy[retry.Policy] = st.one_of(fixed, linear, exponential)

failures = st.builds(
    Failed,
    error=st.just(ERROR),
    reason=st.sampled_from([Reason.ERROR, Reason.BAD_ARGUMENTS, Reason.BAD_RESULT]),
    permanent=st.booleans(),
    retry_in_s=st.none() | delays_s,
)
outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.just(Succeeded("1")),
    failures,
    st.builds(TimedOut, error=st.just(ERROR), total=st.booleans()),
    st.just(Cancelled()),
    st.builds(Snoozed, delay_s=delays_s),
    st.builds(GivenBack, reason=st.sampled_from([Reason.DRAINED, Reason.NOT_HELD, Reason.NOT_BEGUN]), delay_s=delays_s),
    st.just(GivenBack(Reason.DRAINED)),
    st.just(Lost(ERROR)),
    st.just(Expired()),
)
rules = st.builds(
    Rules,
    retry=policies,
    timeout_s=st.none() | delays_s,
    total_timeout_s=st.none() | st.floats(min_value=0.001, max_value=1e6),
)


@st.composite
def held_rows(draw: st.DrawFn) -> Held:
    """A running row that could exist: its first start is not after its last one."""
    first = draw(st.integers(min_value=NOW - 10**12, max_value=NOW))
    started = draw(st.integers(min_value=first, max_value=NOW))
    cancel = draw(st.none() | st.just(NOW))
    return Held(
        id="x",
        lane=1,
        rank=draw(instants),
        worker=1,
        fence=draw(st.integers(min_value=1, max_value=10_000)),
        attempts=draw(st.integers(min_value=0, max_value=999)),
        crashes=draw(st.integers(min_value=0, max_value=2)),
        first_start_at=first,
        started_at=started,
        cancel_at=cancel,
        cancel_reason=None if cancel is None else draw(st.sampled_from([Reason.CANCELLED, Reason.REPLACED])),
    )
