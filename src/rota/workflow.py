"""What the function of a workflow uses: `from rota.workflow import when, otherwise, first`."""

from __future__ import annotations

from rota.domain.workflow.wait import Decision, Event
from rota.sdk.workflow.blocks import otherwise, when
from rota.sdk.workflow.functions import (
    StepOutcome,
    all_of,
    any_of,
    chain,
    default,
    failed,
    first,
    is_none,
    not_,
    one_of,
    outcomes,
    skipped,
    succeeded,
    text,
)
from rota.sdk.workflow.this_run import RunInfo, this_run
from rota.sdk.workflow.waits import approve, sleep, wait_for_event

__all__ = [
    "Decision",
    "Event",
    "RunInfo",
    "StepOutcome",
    "all_of",
    "any_of",
    "approve",
    "chain",
    "default",
    "failed",
    "first",
    "is_none",
    "not_",
    "one_of",
    "otherwise",
    "outcomes",
    "skipped",
    "sleep",
    "succeeded",
    "text",
    "this_run",
    "wait_for_event",
    "when",
]
