"""What the function of a workflow uses: `from rota.workflow import when, otherwise, first`."""

from __future__ import annotations

from rota.domain.run_info import RunInfo
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
from rota.sdk.workflow.this_run import this_run

__all__ = [
    "RunInfo",
    "StepOutcome",
    "all_of",
    "any_of",
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
    "succeeded",
    "text",
    "this_run",
    "when",
]
