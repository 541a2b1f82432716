"""A claim: one attempt, handed to a worker."""

from __future__ import annotations

import msgspec

from rota.domain.lifecycle import Held
from rota.domain.run_info import RunInfo


class Taken(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The part of a claim that moves from table to table."""

    id: str
    lane: int
    rank: int
    fence: int
    attempts: int
    crashes: int
    first_start_at: int
    started_at: int
    run: str | None
    """The run that the execution is a step of."""


class Claim(Taken, frozen=True, array_like=True, gc=False):
    """One attempt, as its worker receives it."""

    job: str
    arguments: str
    deadline: int | None
    run_at: int
    created_at: int
    tick: int | None = None
    catch_up: int | None = None
    headers: str | None = None
    """A JSON object of texts by name."""
    overrides: str | None = None
    """The execution's own timeout and retry policy, as `domain/overrides.py` reads them."""
    inputs: str | None = None
    """The arguments of a step that are results of other steps, before they are resolved (`ops/runs/inputs.py`)."""
    upstream: str | None = None
    """A JSON object: the executions that it was started after, by job."""
    step: int | None = None
    """The number of the step in its run."""
    map_index: int | None = None
    """The number of the item, if the step is a map."""
    event: str | None = None
    """The event that started it: an `EventInfo` as JSON."""
    checkpoint: str | None = None
    """The checkpoint that an earlier attempt saved."""
    is_suspect: bool = False
    """Whether it may have killed a worker process that ran several executions: it runs alone."""
    run_info: RunInfo | None = None
    """For a step: its run and its place in it, which `Context.run` returns."""
    definition: str | None = None
    """The definition of a job that the worker does not have by its name: a job as data."""

    def held_by(self, worker: int) -> Held:
        """The running row that this claim stands for."""
        return Held(worker=worker, **{name: getattr(self, name) for name in Taken.__struct_fields__})
