"""Pausing a job: by somebody, or by itself after failures in a row. What it runs goes on; what waits is put aside.

Executions of a paused job are put aside when a worker comes upon them, not before: a job with a million of them is
paused at once, and others in the same queue are not kept waiting.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import msgspec

from rota.domain.claim import Claim
from rota.domain.errors import UnknownJob
from rota.ops.audit import audit
from rota.store.hints import FIRST_RANK, Ready
from rota.store.port import Tx

KNOWN_S = 1.0
"""How old the news may be that a job is paused. That it is paused no more is known at once."""
AT_ONCE = -1.0


def pause(tx: Tx, namespace: str, app: str, job: str, actor: str, note: str = "") -> bool:
    """No more starts until it is resumed; False if it was paused already."""
    _must_exist(tx, namespace, app, job)
    changed = tx.run("pause_job", namespace=namespace, app=app, job=job, actor=actor, note=note) > 0
    if changed:
        tx.recent("paused_jobs", AT_ONCE, namespace=namespace, app=app)
        audit(tx, actor, "job.pause", f"{app}.{job}", after={"note": note})
    return changed


def resume(tx: Tx, namespace: str, app: str, job: str, actor: str) -> bool:
    """Goes on, with what was put aside in its old place; False if it was not paused."""
    _must_exist(tx, namespace, app, job)
    if not tx.run("resume_job", namespace=namespace, app=app, job=job):
        return False
    which = {"namespace": namespace, "waits_for": _reason(app, job)}
    lanes = [row[0] for row in tx.rows("lanes_put_aside", **which)]
    tx.run("take_up", **which)
    audit(tx, actor, "job.resume", f"{app}.{job}")
    tx.tell(Ready.of((lane, FIRST_RANK) for lane in lanes))
    return True


def startable(tx: Tx, namespace: str, app: str, taken: list[Claim]) -> list[Claim]:
    """Those of what a worker has just taken whose job is not paused. The others wait for that to end."""
    listed = tx.recent("paused_jobs", KNOWN_S, namespace=namespace, app=app)
    told = frozenset(msgspec.json.decode(listed[0])) if listed and listed[0] else frozenset()
    jobs = sorted({claim.job for claim in taken if claim.job in told})
    if not jobs:
        return taken
    paused = {row[0] for row in tx.rows("paused_now", namespace=namespace, app=app, jobs=jobs)}
    aside = sorted((claim for claim in taken if claim.job in paused), key=lambda claim: (claim.job, claim.id))
    for job, claims in groupby(aside, key=lambda claim: claim.job):
        tx.run("put_aside", ids=[claim.id for claim in claims], waits_for=_reason(app, job))
    return [claim for claim in taken if claim.job not in paused]


def count(tx: Tx, ended: Sequence[tuple[str, bool]]) -> None:
    """After executions have ended, in that order, each with whether it has failed.

    Pauses jobs that want to be paused after so many failures in a row, and have them now. As long as none of theirs
    fails this reads a row for each execution and writes none.
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
    """The failures after the last success, and the most that there were without one in between."""
    now = longest = before
    for has_failed in failed:
        now = now + 1 if has_failed else 0
        longest = max(longest, now)
    return now, longest


def _must_exist(tx: Tx, namespace: str, app: str, job: str) -> None:
    if tx.one("requirements_of", namespace=namespace, app=app, job=job) is None:
        raise UnknownJob(f"app {app!r} has no job {job!r}; `rota jobs` lists them")


def _reason(app: str, job: str) -> str:
    return f"job {app}.{job}, which is paused"
