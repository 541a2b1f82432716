"""What a waiting execution may wait for: the one list of the kinds of blockers.

An execution waits as long as it has at least one blocker. A blocker is a kind and a key. The key names the job, the
run, the event or the limit, and is unique within the kind over all namespaces.
"""

from __future__ import annotations

from enum import StrEnum
from typing import assert_never


class Kind(StrEnum):
    """The first is in use; the others are the kinds that workflows and limits need."""

    JOB_PAUSED = "job_paused"
    RUN = "run"
    """An open run waits for its steps, and is never claimed."""
    RUN_PAUSED = "run_paused"
    MAP = "map"
    DEPENDENCY = "dependency"
    EVENT = "event"
    APPROVAL = "approval"
    LIMIT = "limit"
    RATE = "rate"


def job_key(namespace: str, app: str, job: str) -> str:
    """The key of a job's blocker. No name contains a slash."""
    return f"{namespace}/{app}/{job}"


def words(kind: Kind, key: str) -> str:
    """What an execution behind this blocker waits for; the end of a sentence."""
    match kind:
        case Kind.JOB_PAUSED:
            _, app, job = key.split("/")
            return f"older executions of job {app}.{job}, which was resumed"
        case Kind.RUN:
            return "the steps of its run"
        case Kind.RUN_PAUSED:
            return f"run {key}, which is paused"
        case Kind.MAP:
            return "earlier items of its map"
        case Kind.DEPENDENCY:
            return f"execution {key}"
        case Kind.EVENT:
            return f"event {key}"
        case Kind.APPROVAL:
            return f"approval {key}"
        case Kind.LIMIT:
            return f"a free place under limit {key}"
        case Kind.RATE:
            return f"rate limit {key}"
        case _:
            assert_never(kind)
