"""Decides how many processes a worker should have, from their load since the last look.

Scales up by one when all processes were full and work waits, for `GROW_AFTER_S`. Scales down by one when the remaining
processes would stay below `SPARE`, for `quiet_s`. Starting a process costs an import, lacking one makes executions
wait: so a worker grows within seconds and shrinks slowly. If a process is needed again soon after one was let go, the
next one is kept twice as long, so that a fluctuating load does not start and stop processes all the time.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from rota.domain.headcount import Headcount

LOOK_S = 1.0
"""How often to look at the processes."""
GROW_AFTER_S = 2.0
FULL = 0.9
"""The share of its slots in use, on average between two looks, from which a process is full."""
SPARE = 0.7
"""The share of their slots that the remaining processes would use, below which one is let go."""
SOON = 4
"""If a process is needed again within this many times `quiet_s`, the last one was let go too soon."""
LONGEST_QUIET_S = 600.0


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """The load of the processes since the last look."""

    processes: int
    """Processes that take work, or will when they have started."""
    slots: int
    """Of each."""
    used: float
    """Slots in use, of all together."""
    is_pressed: bool = False
    """Whether all were full and executions wait that they could take."""
    has_idle: bool = False
    """Whether one of them holds no execution now."""


class Mood(msgspec.Struct, frozen=True, kw_only=True):
    """The state between two looks."""

    pressed_since: float | None = None
    quiet_since: float | None = None
    let_go_at: float | None = None
    """When a process was let go, unless another one was started since then."""
    patience: int = 1
    """A process that is not needed is kept for this many times `quiet_s`."""


def decide(mood: Mood, load: Load, now: float, allowed: Headcount, quiet_s: float) -> tuple[Mood, int]:
    """The state for the next look, and how many processes there should be: one more or fewer at most."""
    if load.processes > allowed.most or load.processes < allowed.least:
        return Mood(patience=mood.patience), min(max(load.processes, allowed.least), allowed.most)
    if load.is_pressed:
        since = now if mood.pressed_since is None else mood.pressed_since
        if now - since < GROW_AFTER_S or load.processes == allowed.most:
            return replace(mood, pressed_since=since, quiet_since=None), load.processes
        return Mood(patience=_patience(mood, now, quiet_s)), load.processes + 1
    if load.processes == allowed.least or load.used > SPARE * load.slots * (load.processes - 1):
        return replace(mood, pressed_since=None, quiet_since=None), load.processes
    since = now if mood.quiet_since is None else mood.quiet_since
    if now - since < _kept_s(mood, quiet_s) or not load.has_idle:
        return replace(mood, pressed_since=None, quiet_since=since), load.processes
    return Mood(let_go_at=now, patience=mood.patience), load.processes - 1


def _kept_s(mood: Mood, quiet_s: float) -> float:
    return max(quiet_s, min(LONGEST_QUIET_S, mood.patience * quiet_s))


def _patience(mood: Mood, now: float, quiet_s: float) -> int:
    """The patience after a start: doubled if the last process was let go too soon, reset if that was long ago."""
    if mood.let_go_at is None:
        return mood.patience
    kept_s = _kept_s(mood, quiet_s)
    if now - mood.let_go_at >= SOON * kept_s:
        return 1
    return mood.patience if kept_s >= LONGEST_QUIET_S else 2 * mood.patience
