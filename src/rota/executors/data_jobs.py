"""Runs jobs from their definitions, which come with their claims: commands, requests, and functions of other jobs.

A worker has an executor `*command` and one `*http` among its own if it runs such jobs. Each version of a definition
becomes an executor once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from msgspec.structs import replace

from rota.domain import breaker, job, retry
from rota.domain.breaker import DEFAULT_FAILURES, DEFAULT_WAIT
from rota.domain.claim import Claim
from rota.domain.errors import DefinitionError
from rota.domain.job import Definition
from rota.domain.lifecycle import Rules
from rota.domain.outcome import Outcome
from rota.domain.served import COMMANDS, REQUESTS
from rota.executors import kinds
from rota.executors.attempt_state import AttemptState
from rota.executors.port import Executor

MOST_KEPT = 1000
"""How many versions of definitions a worker remembers."""
_KINDS = {kinds.COMMAND: COMMANDS, kinds.HTTP: REQUESTS}


class FromDefinitions(Executor):
    """Makes the executors of all jobs of one kind. It stands for them where a worker lists its executors."""

    def __init__(self, sample: Mapping[str, Any], max_result_bytes: int, directory: str | None = None) -> None:
        """`sample` is a target of this kind. Commands that name no directory run in `directory`."""
        made = kinds.executor(sample, Rules(), max_result_bytes)
        self.rules, self.processes, self.missing = made.rules, made.processes, made.missing
        self._abandon = made.abandon
        self._directory = None if directory is None else directory.replace("{", "{{").replace("}", "}}")
        self._cached = lru_cache(maxsize=MOST_KEPT)(self._make)
        self._max_result_bytes = max_result_bytes

    def of(self, definition: str) -> Executor:
        return self._cached(definition)

    def _make(self, definition: str) -> Executor:
        about = job.decode(definition)
        target = about.target
        if self._directory is not None and target["kind"] == kinds.COMMAND and target.get("directory") is None:
            target = {**target, "directory": self._directory}
        return kinds.executor(target, rules(about), self._max_result_bytes)

    async def run(self, claim: Claim, attempt: AttemptState) -> Outcome:
        raise AssertionError("an execution is run by the executor of its own definition")

    def abandon(self) -> None:
        self._abandon()


class Renamed(Executor):
    """Runs the function of one job for another, with the rules of the other."""

    def __init__(self, base: Executor, name: str, rules: Rules) -> None:
        self._base, self._name = base, name
        # All that the engine reads of an executor, so that a new attribute is not forgotten here.
        for attribute in Executor.__annotations__:
            setattr(self, attribute, getattr(base, attribute))
        self.rules = rules

    async def run(self, claim: Claim, attempt: AttemptState) -> Outcome:
        return await self._base.run(replace(claim, job=self._name), attempt)


def find(definition: str, targets: Mapping[str, Executor]) -> Executor | None:
    """The executor of a job as data; None if this worker cannot run it."""
    about = job.decode(definition)
    name = runs(about)
    if name is None or (base := targets.get(name)) is None:
        return None
    if about.target["kind"] == kinds.FUNCTION:
        return Renamed(base, name, rules(about))
    with contextlib.suppress(DefinitionError):  # A newer version of Rota may know more options.
        return base.of(definition)
    return None


def runs(about: Definition) -> str | None:
    """What a worker must have among its jobs to run this job; None for the job itself."""
    kind = about.target.get("kind")
    if kind == kinds.FUNCTION:
        return str(about.target["name"])
    return _KINDS.get(str(kind))


def rules(about: Definition) -> Rules:
    return Rules(
        retry=retry.described(about.retry) if about.retry else retry.DEFAULT,
        timeout_s=about.timeout_s,
        total_timeout_s=about.total_timeout_s,
        progress_timeout_s=about.progress_timeout_s,
        slice_s=about.slice_s,
        breakers=tuple(breaker.breaker(name, DEFAULT_FAILURES, DEFAULT_WAIT) for name in about.needs.breakers),
        pauses=about.pause_after is not None,
    )
