"""Blockers: the one list of the kinds of things that a waiting execution waits for.

An execution waits as long as it has at least one blocker. A blocker is a kind and a key. The key names the job, the
run, the event or the limit, and is unique within the kind over all namespaces.
"""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """`LIMIT` and `RATE` are not in use yet."""

    JOB_PAUSED = "job_paused"
    RUN = "run"
    """An open run waits for its steps, and is never claimed."""
    RUN_PAUSED = "run_paused"
    MAP = "map"
    DEPENDENCY = "dependency"
    SLEEP = "sleep"
    """The key of `SLEEP`, `EVENT` and `APPROVAL` is the id of the run whose step waits."""
    EVENT = "event"
    APPROVAL = "approval"
    LIMIT = "limit"
    RATE = "rate"


_WORDS = {
    Kind.JOB_PAUSED: "older executions of job {1}.{2}, which was resumed",
    Kind.RUN: "the steps of its run",
    Kind.RUN_PAUSED: "run {key}, which is paused",
    Kind.MAP: "earlier items of its map",
    Kind.DEPENDENCY: "job {3}.{4}",
    Kind.SLEEP: "its time",
    Kind.EVENT: "an event",
    Kind.APPROVAL: "an answer",
    Kind.LIMIT: "a free place under limit {key}",
    Kind.RATE: "rate limit {key}",
}


_OF_SEVERAL = {
    Kind.RUN: "the steps of their run have not ended",
    Kind.RUN_PAUSED: "their run is paused",
    Kind.MAP: "earlier items of their map have not ended",
    Kind.DEPENDENCY: "the jobs that they depend on have not ended",
    Kind.SLEEP: "their time has not come",
    Kind.EVENT: "their event has not come",
    Kind.APPROVAL: "their question has no answer",
    Kind.LIMIT: "their limit has no free place",
    Kind.RATE: "their rate limit is reached",
}
_ENDS = {"": "the end of ", "success": "a success of ", "failed": "a failure of ", "done": "the end of "}


def job_key(namespace: str, app: str, job: str) -> str:
    """The key of a job's blocker. No name contains a slash."""
    return f"{namespace}/{app}/{job}"


def reason(kind: Kind, job: str, *, is_job_paused: bool) -> str:
    """Why several executions of a job wait behind blockers of this kind, in a sentence."""
    if kind is Kind.JOB_PAUSED:
        return f"job {job} is paused" if is_job_paused else f"job {job} was resumed, and they start in turn"
    return _OF_SEVERAL[kind]


def words(kind: Kind, key: str) -> str:
    """What an execution behind this blocker waits for; the end of a sentence.

    The key of a dependency may be followed by the outcome that counts.
    """
    parts = key.split("/")
    before = _ENDS["".join(parts[5:])] if kind is Kind.DEPENDENCY else ""
    return before + _WORDS[kind].format(*parts, key=key)
