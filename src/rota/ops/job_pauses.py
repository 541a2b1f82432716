"""Pausing and resuming a job, by a person or by itself after failures in a row.

Executions that run continue. Executions that are ready stay in `ready` until a claim takes them; the claim puts them
behind a blocker. So pausing a job with a million executions writes one row, and does not delay other jobs.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.domain.blocker import Kind, job_key
from rota.domain.errors import UnknownJob
from rota.ops import blockers
from rota.ops.audit import audit
from rota.store.port import Tx

KNOWN_S = 1.0
"""Claims cache the list of paused jobs for this long."""
AT_ONCE = -1.0
_names = msgspec.json.Decoder(list[str]).decode


def pause(tx: Tx, namespace: str, app: str, job: str, actor: str, note: str = "") -> bool:
    """Starts no more executions of the job until it is resumed; False if it was paused already."""
    _must_exist(tx, namespace, app, job)
    changed = tx.changed("pause_job", namespace=namespace, app=app, job=job, actor=actor, note=note) > 0
    if changed:
        blockers.unlift(tx, Kind.JOB_PAUSED, job_key(namespace, app, job))
        tx.recent("held_jobs", AT_ONCE, kind=Kind.JOB_PAUSED)
        audit(tx, namespace, actor, "job.pause", f"{app}.{job}", after={"note": note})
    return changed


def resume(tx: Tx, namespace: str, app: str, job: str, actor: str) -> bool:
    """Starts executions of the job again, each in the place in line that it had; False if it was not paused."""
    _must_exist(tx, namespace, app, job)
    if not tx.changed("resume_job", namespace=namespace, app=app, job=job):
        return False
    blockers.lift(tx, Kind.JOB_PAUSED, job_key(namespace, app, job))
    audit(tx, namespace, actor, "job.resume", f"{app}.{job}")
    return True


def held(tx: Tx) -> frozenset[str]:
    """Names of jobs that are paused, or were resumed while executions of them still wait; up to `KNOWN_S` old."""
    paused, lifted = tx.recent("held_jobs", KNOWN_S, kind=Kind.JOB_PAUSED)
    names = _names(paused) if paused else []
    return frozenset([*names, *(key.rpartition("/")[2] for key in _names(lifted))] if lifted else names)


def count(tx: Tx, ended: Sequence[tuple[str, bool]]) -> None:
    """Counts failures in a row, and pauses each job that has reached its `pause_after`.

    `ended` are executions in the order in which they ended, each with whether it has failed. As long as none fails this
    reads a row for each execution and writes none.
    """
    jobs = {id: (where, failures) for id, *where, failures in tx.rows("jobs_that_pause", ids=[id for id, _ in ended])}
    ends: dict[tuple[str, str, str], list[bool]] = {}
    for id, has_failed in ended:
        if id in jobs:
            (namespace, app, job), failures = jobs[id]
            if has_failed or failures or (namespace, app, job) in ends:
                ends.setdefault((namespace, app, job), []).append(has_failed)
    for (namespace, app, job), failed in sorted(ends.items()):
        which = {"namespace": namespace, "app": app, "job": job}
        if (row := tx.one("lock_failures", **which)) is None:
            continue
        before, most = row
        failures, longest = _in_a_row(before, failed)
        if failures != before:
            tx.run("set_failures", failures=failures, **which)
        if longest >= most:
            words = "1 execution has failed" if most == 1 else f"{most} executions in a row have failed"
            pause(tx, namespace, app, job, "rota", words)


def _in_a_row(before: int, failed: Sequence[bool]) -> tuple[int, int]:
    """The failures in a row after these ends, and the most in a row at any point; `before` is the number at first."""
    now = longest = before
    for has_failed in failed:
        now = now + 1 if has_failed else 0
        longest = max(longest, now)
    return now, longest


def _must_exist(tx: Tx, namespace: str, app: str, job: str) -> None:
    if tx.one("requirements_of", namespace=namespace, app=app, job=job) is None:
        raise UnknownJob(f"app {app!r} has no job {job!r}; `rota jobs` lists them")
