"""A schedule as the options that make it, named as in Python."""

from __future__ import annotations

from typing import Any

import msgspec

from rota.domain.instant import MICROSECONDS, moment
from rota.domain.schedule import CatchUp, Spec
from rota.domain.ticks import Gap, Repeat
from rota.domain.trigger import After, At, Cron, Every
from rota.views.schedule import catch_up


def options(spec: Spec) -> dict[str, Any]:
    """Every option, None where there is none. Durations are seconds, and the arguments are their JSON."""
    trigger = spec.trigger
    by_cron = trigger if isinstance(trigger, Cron) else None
    by_interval = trigger if isinstance(trigger, Every) else None
    return {
        "job": spec.job,
        "cron": by_cron.expression if by_cron else None,
        "every": by_interval.period / MICROSECONDS if by_interval else None,
        "after": trigger.delay / MICROSECONDS if isinstance(trigger, After) else None,
        "at": [moment(at) for at in trigger.instants] if isinstance(trigger, At) else None,
        "tz": spec.tz,
        "phase": by_interval.phase / MICROSECONDS if by_interval and by_interval.phase else None,
        "start": None if spec.start is None else moment(spec.start),
        "end": None if spec.end is None else moment(spec.end),
        "exclude": list(spec.excluded),
        "calendars": list(spec.calendars),
        # Options of a cron expression only: in the default they are left out, so that a PATCH may change the trigger.
        "dst_gap": by_cron.gap.value if by_cron and by_cron.gap is not Gap.NEXT else None,
        "dst_overlap": by_cron.repeat.value if by_cron and by_cron.repeat is not Repeat.FIRST else None,
        "catch_up": _catch_up(spec),
        "window": spec.window_s,
        "overlap": spec.overlap.value,
        "jitter": spec.jitter_s,
        "arguments": msgspec.Raw(spec.arguments.encode()),
        "queue": spec.queue,
        "priority": spec.priority,
    }


def _catch_up(spec: Spec) -> str | int:
    """Of the two spellings of none, 0 and "none", the one that was given."""
    return 0 if spec.catch_up is CatchUp.NONE and spec.catch_up_most == 1 else catch_up(spec)
