"""A handle on one run of a workflow: its steps, answers to its approvals, and pausing, resuming and retrying it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from rota.domain import payload
from rota.domain.errors import UsageError
from rota.ops.runs.retry import Request
from rota.sdk.handle import Handle
from rota.views.run import RunDetail
from rota.views.step import StepInfo

T = TypeVar("T")
Version = Literal["pinned", "latest"]


class Run(Handle[T]):
    """A run, by its id. A run is an execution: it has a status, a result, and can be cancelled like any other."""

    __slots__ = ()
    _noun = "run"

    def __repr__(self) -> str:
        return f"Run({self.id!r})"

    def detail(self) -> RunDetail:
        """The whole run: its steps, its critical path, and what a retry would run again."""
        return self._client.run(self.id)

    def steps(self) -> list[StepInfo]:
        """Every step, in the order of the workflow."""
        return self.detail().steps

    def step(self, name: str) -> StepInfo:
        """One step, by its name."""
        found = {one.step: one for one in self.steps()}
        if name not in found:
            raise UsageError(f"run {self.id} has no step {name!r}: its steps are {', '.join(found)}")
        return found[name]

    def pause(self, note: str = "") -> bool:
        """No step starts until `resume`; False if the run was paused already. Its timeout stands still meanwhile."""
        return self._client.pause_run(self.id, note)

    def resume(self) -> bool:
        """False if the run was not paused."""
        return self._client.resume_run(self.id)

    def approve(self, step: str | None = None, note: str = "", by: str | None = None) -> None:
        """Approves a step, or without `step` the only open approval of the run. `by` is the person who answers.

        The first answer wins: if the step was answered before, raises a Conflict whose message has that answer.
        """
        self._client.answer_run(self.id, step, approved=True, note=note, by=by)

    def reject(self, step: str | None = None, note: str = "", by: str | None = None) -> None:
        """Rejects a step, or without `step` the only open approval of the run; otherwise like `approve`."""
        self._client.answer_run(self.id, step, approved=False, note=note, by=by)

    def retry(
        self,
        from_: str | None = None,
        *,
        arguments: Mapping[str, Any] | None = None,
        step_arguments: Mapping[str, Mapping[str, Any]] | None = None,
        version: Version = "pinned",
    ) -> Run[T]:
        """Starts a new run that keeps what has succeeded.

        By default every step that failed, was cancelled or was blocked runs again, and every step after it. `from_` is
        the name of the step to start from, or `"start"` for all, with new `arguments` if given. `step_arguments` are
        literal arguments, by step, in place of those of the workflow. `version="latest"` takes the workflow as it is
        now instead of as it was when the run began.
        """
        steps = {step: dict(given) for step, given in (step_arguments or {}).items()}
        text = None
        if arguments is not None:
            text = payload.encode(dict(arguments), "the arguments", self._client.settings.max_payload_bytes)
        request = Request(from_, text, steps, latest=version == "latest")
        return Run(self._client, self._client.retry_run(self.id, request), self._result_type)

    async def adetail(self) -> RunDetail:
        return await asyncio.to_thread(self.detail)

    async def asteps(self) -> list[StepInfo]:
        return await asyncio.to_thread(self.steps)

    async def apause(self, note: str = "") -> bool:
        return await asyncio.to_thread(self.pause, note)

    async def aresume(self) -> bool:
        return await asyncio.to_thread(self.resume)

    async def aapprove(self, step: str | None = None, note: str = "", by: str | None = None) -> None:
        await asyncio.to_thread(self.approve, step, note, by)

    async def areject(self, step: str | None = None, note: str = "", by: str | None = None) -> None:
        await asyncio.to_thread(self.reject, step, note, by)

    async def aretry(
        self,
        from_: str | None = None,
        *,
        arguments: Mapping[str, Any] | None = None,
        step_arguments: Mapping[str, Mapping[str, Any]] | None = None,
        version: Version = "pinned",
    ) -> Run[T]:
        """`retry`, without blocking the event loop."""
        given = {"arguments": arguments, "step_arguments": step_arguments, "version": version}
        return await asyncio.to_thread(self.retry, from_, **given)  # type: ignore[arg-type]


def run_of(handle: Handle[T]) -> Run[T]:
    """The same execution, seen as a run."""
    return Run(handle._client, handle.id, handle._result_type, created=handle.created)
