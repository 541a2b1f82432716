"""The commands that a user may want next for a run: show a traceback, answer an approval, retry, resume, watch."""

from __future__ import annotations

from collections.abc import Sequence

from rota.cli import text
from rota.domain.status import TERMINAL, Status
from rota.views.run import RetryPlan, RunDetail
from rota.views.step import StepInfo

MOST_COMMANDS = 10
"""How many commands that answer approvals are listed."""


def commands(run: RunDetail, *, is_short: bool) -> list[tuple[str, str]]:
    """Commands, each with what it does. There are none for a run that was retried: its retry has them."""
    id = shown_id(run.run_id, is_short=is_short)
    if run.retried_as is not None:
        return []
    found = _tracebacks(run, is_short=is_short)
    if run.paused is not None:
        return [(f"rota run resume {id}", ""), *found]
    answers = [command for step in run.steps if step.wait for command in step.wait.commands]
    found += [(command.replace(run.run_id, id), "") for command in answers[:MOST_COMMANDS]]
    if run.retry is not None:
        found.append((f"rota run retry {id}", plan_words(run.retry, run.steps)))
    return found if found or run.status in TERMINAL else [(f"rota run watch {id}", "")]


def plan_words(plan: RetryPlan, steps: Sequence[StepInfo]) -> str:
    """`runs 2 of 12 items of a, then s; keeps 10 items, 3 steps`."""
    if plan.undos:
        return f"repeats the undo of {some(plan.undos)}; keeps {text.count(plan.kept_step_count, 'step')}"
    items = {one.step: f"{one.again_count:,} of {text.count(one.width, 'item')} of {one.step}" for one in plan.partial}
    upstream = {step.step: set(step.upstream) for step in steps}
    causes = [items.get(name, name) for name in plan.again if upstream[name].isdisjoint(plan.again)]
    after = [name for name in plan.again if not upstream[name].isdisjoint(plan.again)]
    kept_items = sum(one.width - one.again_count for one in plan.partial)
    kept = [text.count(kept_items, "item")] if kept_items else []
    kept += [text.count(plan.kept_step_count, "step")] if plan.kept_step_count else []
    then = f", then {some(after)}" if after else ""
    return f"runs {some(causes)}{then}" + (f"; keeps {', '.join(kept)}" if kept else "")


def _tracebacks(run: RunDetail, *, is_short: bool) -> list[tuple[str, str]]:
    """The commands that show why the first step failed, and why the first undo did."""
    steps = [(step, step.step) for step in run.steps if step.status == Status.FAILED and not step.may_fail][:1]
    steps += [(step, f"the undo of {step.step}") for step in run.undos if step.status == Status.FAILED][:1]
    return [command for step, name in steps if (command := _traceback(run, step, name, is_short=is_short)) is not None]


def _traceback(run: RunDetail, step: StepInfo, name: str, *, is_short: bool) -> tuple[str, str] | None:
    if step.map is None:
        id = shown_id(step.execution_id or "", is_short=is_short)
        if step.sub_run is not None:
            return f"rota run show {id}", f"the run of {name}"
        return (f"rota show {id}", f"traceback of {name}") if step.error_message else None
    if not step.map.bad_items or step.map.bad_items[0].status is not Status.FAILED:
        return None
    first = step.map.bad_items[0]
    if step.workflow is not None:
        above = shown_id(run.run_id, is_short=is_short)
        return f"rota runs --parent {above} --status failed", f"the failed runs of {name}"
    return f"rota show {shown_id(first.execution_id, is_short=is_short)}", f"traceback of {name}[{first.index}]"


def shown_id(id: str, *, is_short: bool) -> str:
    """The id, or the end of it, which commands understand."""
    return id[-text.SHORT_ID :] if is_short else id


def some(names: Sequence[str], most: int = 6) -> str:
    """The first names, and the number of further ones: `a, b and 3 more`."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
