"""A run as lines for people: a heading, one line per step with its place in time, and what to do next.

On a terminal the lines fit its width. Elsewhere they are complete.
"""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterable, Sequence
from datetime import datetime

import click
import msgspec

from rota.cli import layout, run_next, text
from rota.cli.run_next import some
from rota.domain import duration
from rota.domain.blocker import Kind
from rota.domain.status import TERMINAL, Reason, Status
from rota.views import state_marks
from rota.views.map_items import MapInfo
from rota.views.run import RunDetail
from rota.views.step import PENDING, StepInfo

WIDE = 140
"""On a terminal of at least this width an error is beside its step, otherwise below it."""
LABEL = 15
TOOK = 6
INDENT = "  "
UNBOUNDED = 10_000
MOST_ARGUMENTS = 70
"""How many characters of the arguments of a run its heading has."""
_SIGNS = {
    **{str(status): (state_marks.sign(status), state_marks.terminal_colour(status)) for status in Status},
    "blocked": ("–", "bright_black"),
    PENDING: ("·", "bright_black"),
}
_PLAIN_REASONS = (None, "", Reason.ERROR, Reason.PERMANENT_ERROR, Reason.RETRIES_EXHAUSTED, Reason.STEP_FAILED)
"""Reasons that say no more than the count of attempts and the error."""


class Row(msgspec.Struct, frozen=True):
    """The line of one step: its name, its outcome, its duration, a bar on the time line, and its error."""

    sign: str
    colour: str
    name: str
    note: str
    took: str
    bar: str
    remark: str
    remark_colour: str


class Widths(msgspec.Struct, frozen=True):
    """The columns of the lines of steps. `remark` is 0 if remarks have lines of their own."""

    name: int
    note: int
    bar: int
    remark: int


def lines(run: RunDetail, columns: int | None, most_steps: int | None = None) -> list[str]:
    """`columns` is None without a terminal. At most `most_steps` steps are drawn; those that run come first."""
    shown, left_out = _chosen(run.steps, most_steps)
    wide = columns or UNBOUNDED
    bar = 20 if columns is None else max(10, columns // 6 if columns >= WIDE else columns // 8)
    undos, undos_left_out = _chosen(run.undos, most_steps)
    rows = [_row(run, step, bar) for step in shown] + [_row(run, step, bar) for step in undos]
    widths = _widths(rows, columns, bar)
    drawn = [line for row in rows[: len(shown)] for line in _step_lines(row, widths, wide)]
    if left_out:
        drawn.append(_styled(f"{INDENT}… and {text.count(left_out, 'step')} more", "bright_black"))
    if undos:
        drawn.append("undo")
        drawn += [line for row in rows[len(shown) :] for line in _step_lines(row, widths, wide)]
    if undos_left_out:
        drawn.append(_styled(f"{INDENT}… and {text.count(undos_left_out, 'undo')} more", "bright_black"))
    return [*_heading(run, wide), *drawn, *_footer(run, wide)]


def sign(status: str) -> str:
    """One character for the status of a step."""
    return _SIGNS[status][0]


# --- The heading and the end ----------------------------------------------------------------------


def _heading(run: RunDetail, wide: int) -> list[str]:
    took = duration.words(run.duration.total_seconds()) if run.duration else ""
    parts = [
        (f"{run.workflow} {run.run_id if wide >= WIDE else text.short_id(run.run_id)}", "bold"),
        (status_words(run), _SIGNS[run.status][1]),
        (f"version {run.version}", ""),
        (f"scheduled for {run.scheduled_for:%Y-%m-%d %H:%M} UTC", ""),
        (f"{'took' if run.status in TERMINAL else 'running for'} {took}" if took else "", ""),
        (f"arguments {text.clipped(_json(run.arguments), MOST_ARGUMENTS)}" if run.arguments else "", ""),
    ]
    return _flowed([(text.harmless(words), style) for words, style in parts if words], wide)


def status_words(run: RunDetail) -> str:
    """The status of a run, such as `failed: load` or `running, paused 5 m ago by ops`."""
    words = run.status.value
    if run.reason == Reason.RUN_TIMEOUT and run.status is Status.FAILED:
        words += f": {_timeout(run)}"
    elif run.status is Status.FAILED:
        words += f": {run.failed_step or run.reason}" if run.failed_step or run.reason else ""
        words += ", and an undo failed" if run.reason == Reason.UNDO_FAILED and run.failed_step else ""
    if run.is_undoing:
        return f"{words}, undoing" + (f", {text.pause(run.paused)}" if run.paused else "")
    if run.stopping is not None and run.status not in TERMINAL:
        words += f", stopping ({run.stopping})"
    return words + (f", {text.pause(run.paused)}" if run.paused else "")


def _timeout(run: RunDetail) -> str:
    """`timeout of 2s; long was running`."""
    running = [step.step for step in run.steps if step.status == Status.CANCELLED and step.started_at is not None]
    limit = "" if run.timeout is None else f" of {text.short_length(run.timeout.total_seconds())}"
    if not running:
        return f"timeout{limit}"
    return f"timeout{limit}; {some(running, 3)} {'was' if len(running) == 1 else 'were'} running"


def _flowed(parts: Iterable[tuple[str, str]], wide: int) -> list[str]:
    """Parts beside each other, in as many lines as they need."""
    found: list[list[tuple[str, str]]] = [[]]
    used = 0
    for words, style in parts:
        if found[-1] and used + 3 + layout.width(words) > wide:
            found.append([])
            used = len(INDENT)
        used += layout.width(words) + (3 if found[-1] else 0)
        found[-1].append((words, style))
    texts = ["   ".join(_styled(words, style) for words, style in line) for line in found]
    return [line if number == 0 else INDENT + line for number, line in enumerate(texts)]


def _footer(run: RunDetail, wide: int) -> list[str]:
    found: list[tuple[str, str]] = []
    if run.parent_run_id is not None and run.parent_step is not None:
        item = "" if run.parent_index is None else f"[{run.parent_index}]"
        found.append(("step of", f"run {run.parent_run_id}, {run.parent_step}{item}"))
    if run.undo_of is not None:
        found.append(("undo of", f"run {run.undo_of}"))
    if run.replay_of is not None:
        found.append(("retry of", f"run {run.replay_of}"))
    if run.retried_as is not None:
        found.append(
            ("retried as", f"{run_next.shown_id(run.retried_as, is_short=wide < WIDE)} ({run.retried_status})")
        )
    if run.why is not None and not any(step.is_open for step in run.steps):
        found.append(("why", run.why.text))
    if run.error_message is not None and run.failed_step is None:
        found.append(("error", text.first_line(run.error_message)))
    if run.critical_path is not None and run.duration is not None and len(run.steps) > 1:
        of = f"{_took(run.critical_path.duration.total_seconds())} of {_took(run.duration.total_seconds())}"
        found.append(("critical path", f"{' → '.join(run.critical_path.steps)}   {of}"))
    if run.status is Status.SUCCESS and run.result is not None:
        found.append(("result", text.shortened(_json(run.result), 2 * wide)))
    commands = run_next.commands(run, is_short=wide < WIDE)
    found += [("" if number else "next", "   ".join(filter(None, one))) for number, one in enumerate(commands)]
    return [line for label, words in found for line in _labelled(label, words, wide)]


def _json(value: object) -> str:
    from rota.cli.output import as_text

    return as_text(value)


def _labelled(label: str, words: str, wide: int) -> list[str]:
    words = text.harmless(words)
    room = max(layout.NARROW_TEXT, wide - LABEL)
    wrapped = [words]
    if layout.width(words) > room:
        wrapped = textwrap.wrap(words, room, break_long_words=False, break_on_hyphens=False)
    first, *rest = wrapped
    return [_styled(f"{label:{LABEL}}", "bright_black") + first, *(" " * LABEL + line for line in rest)]


# --- Steps ----------------------------------------------------------------------------------------


def _chosen(steps: Sequence[StepInfo], most: int | None) -> tuple[list[StepInfo], int]:
    """The steps to draw, in their order. Those that run come first, then failed ones, those that wait, ended ones."""
    if most is None or len(steps) <= most:
        return list(steps), 0

    def urgency(step: StepInfo) -> tuple[int, float]:
        if step.status == Status.RUNNING:
            return 0, 0.0
        if step.status in (Status.FAILED, Status.CANCELLED):
            return 1, 0.0
        ended = step.completed_at.timestamp() if step.completed_at else 0.0
        return (2, 0.0) if step.is_open else (3, -ended) if step.status == Status.SUCCESS else (4, 0.0)

    room = max(1, most - 1)
    chosen = set(sorted(range(len(steps)), key=lambda number: urgency(steps[number]))[:room])
    return [step for number, step in enumerate(steps) if number in chosen], len(steps) - room


def _row(run: RunDetail, step: StepInfo, bar: int) -> Row:
    mark, colour = _SIGNS[step.status]
    has_time = step.duration is not None and not step.is_kept
    return Row(
        sign=mark,
        colour="bright_black" if step.is_kept else colour,
        name=text.harmless(step.step),
        note=text.harmless(note(step)),
        took=_took(step.duration.total_seconds()) if step.duration is not None and has_time else "",
        bar=_bar(run, step, bar) if has_time else "",
        remark=text.harmless(_remark(step)),
        remark_colour="red" if step.status == Status.FAILED else "bright_black",
    )


def note(step: StepInfo) -> str:
    """The outcome of a step, or the steps that it waits for, in a few words."""
    words = _note(step)
    return f"kept{': ' if words else ''}{words}" if step.is_kept else words


def _note(step: StepInfo) -> str:
    if step.wait is not None and (step.is_open or step.wait.outcome):
        return step.because or step.status
    if step.status in ("blocked", "skipped"):
        return f"{step.status}: {step.because or step.reason or ''}"
    if step.status == PENDING:
        return f"waits for {some(step.waits_for, 3)}" if step.waits_for else "about to start"
    if step.is_open and step.reason == Kind.RUN_PAUSED:
        return "held: the run is paused"
    if step.map is not None:
        return _map_words(step.map)
    runs = f"runs {step.workflow}" if step.workflow else ""
    if step.sub_run is not None and step.is_open:
        return f"{runs}, {step.sub_run.ended_count:,} of {step.sub_run.step_count:,} steps ended"
    attempts = text.count(step.attempt_count, "attempt")
    match step.status:
        case Status.SUCCESS:
            return runs or (attempts if step.attempt_count > 1 else "")
        case Status.FAILED:
            after = f" after {attempts}" if step.attempt_count else ""
            code = "" if step.reason in _PLAIN_REASONS else f": {step.reason}"
            return f"failed{after}{code}{' (tolerated, may_fail)' if step.may_fail else ''}"
        case Status.CANCELLED:
            return step.because or step.reason or step.status
        case Status.RUNNING:
            return runs or (f"attempt {step.attempt_count + 1}" if step.attempt_count else "running")
        case _:
            pass
    return f"{step.status}: {step.because}" if step.because else step.status


def _map_words(about: MapInfo) -> str:
    """`×1,200: 1,198 ok, 2 failed (tolerates 1%)`; `×3: 2 kept, 1 failed` in a retry."""
    to_do = about.open - min(about.open, about.running)
    counts = {
        "kept": about.kept,
        "ok": about.success - about.kept,
        "failed": about.failed,
        "cancelled": about.cancelled,
        "skipped": about.skipped,
        "running": min(about.open, about.running),
        "to do": to_do,
    }
    listed = ", ".join(f"{count:,} {word}" for word, count in counts.items() if count)
    tolerates = f" (tolerates {about.tolerate})" if about.tolerate is not None and about.failed else ""
    at_once = f" ({about.at_once:,} at once)" if about.at_once is not None and about.open else ""
    return f"×{about.width:,}{': ' if listed else ''}{listed}{at_once}{tolerates}"


def _remark(step: StepInfo) -> str:
    if step.error_message is None or step.is_kept or (step.status == Status.SUCCESS and step.map is None):
        return ""
    error = text.first_line(step.error_message)
    return f"[{step.map.bad_items[0].index}] {error}" if step.map is not None and step.map.bad_items else error


def _took(seconds: float) -> str:
    return duration.words(seconds)


def _bar(run: RunDetail, step: StepInfo, cells: int) -> str:
    """The step on the time line of its run. Dots are the time that it waited for a worker."""
    if run.started_at is None or step.started_at is None or run.duration is None:
        return ""
    total = max(run.duration.total_seconds(), 1e-6)

    def cell(at: datetime) -> float:
        assert run.started_at is not None
        return min(1.0, max(0.0, (at - run.started_at).total_seconds() / total)) * cells

    assert step.duration is not None
    begin, end = cell(step.started_at), cell(step.started_at + step.duration)
    first = min(cells - 1, round(begin))
    length = round(end) - first
    waited = first - min(first, round(cell(step.placed_at))) if step.placed_at else 0
    return " " * (first - waited) + "·" * waited + ("▇" * length if length > 0 else "▏")


def _widths(rows: Sequence[Row], columns: int | None, bar: int) -> Widths:
    names, notes = [layout.width(row.name) for row in rows], [layout.width(row.note) for row in rows if row.took]
    name, note_width = max(names, default=0), max(notes, default=0)
    if columns is None:
        return Widths(name, note_width, bar, UNBOUNDED)
    name = min(name, max(12, columns // 5))
    fixed = len(INDENT) + 2 + name + 2 + 2 + TOOK + 2 + bar
    if columns < WIDE:
        return Widths(name, max(0, columns - fixed), bar, 0)
    note_width = min(note_width, columns // 3)
    return Widths(name, note_width, bar, max(0, columns - fixed - note_width - 2))


def _step_lines(row: Row, widths: Widths, wide: int) -> list[str]:
    """The line of a step. Texts that do not fit into it follow below, in as many lines as they need."""
    before = f"{INDENT}{_styled(row.sign, row.colour)} {_padded(row.name, widths.name)}  "
    used = len(INDENT) + 2 + widths.name + 2
    room = max(layout.NARROW_TEXT, wide - used)
    below: list[tuple[str, str]] = []
    if row.took:
        is_short = layout.width(row.note) <= widths.note
        below += [] if is_short else [(row.note, "")]
        middle = f"{_padded(row.note if is_short else '', widths.note)}  {row.took:>{TOOK}}  "
        line = f"{before}{middle}{_styled(row.bar, row.colour)}"
    else:
        first, *rest = _wrapped(row.note, room) or [""]
        below += [(one, "bright_black") for one in rest]
        line = before + _styled(first, "bright_black")
    if row.remark and row.took and layout.width(row.remark) <= widths.remark:
        space = " " * (widths.bar - len(row.bar) + 2)
        line += space + _styled(row.remark, row.remark_colour)
    elif row.remark:
        below.append((row.remark, row.remark_colour))
    lines = [(one, style) for words, style in below for one in _wrapped(words, room)]
    return [line.rstrip(), *(" " * used + _styled(words, style) for words, style in lines)]


def _wrapped(words: str, room: int) -> list[str]:
    """Lines of at most this many columns. A word that is longer is broken."""
    if layout.width(words) <= room:
        return [words]
    # If some characters take two columns, half as many characters fit in any case.
    return textwrap.wrap(words, room if layout.width(words) == len(words) else room // 2, break_on_hyphens=False)


def _padded(words: str, wide: int) -> str:
    words = layout.cut(words, wide) if wide else ""
    return words + " " * (wide - layout.width(words))


def _styled(words: str, style: str) -> str:
    if not words or not style or not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return words
    return click.style(words, bold=True) if style == "bold" else click.style(words, fg=style)
