"""huey on SQLite with fsync, as its documentation sets it up. Runs in .venv-peers, without Rota."""

from __future__ import annotations

import os

from huey import SqliteHuey  # type: ignore[import-not-found]

from benchmarks import probe

huey = SqliteHuey("peer", filename=os.environ["PEER_DATABASE"], fsync=True, results=False)


@huey.task()
def touch() -> None:
    probe.current().bump()


@huey.task()
def stamp(number: int, since: float) -> None:
    probe.current().note(number, since)
