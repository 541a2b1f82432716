"""A job as the engine, the commands and the harness see it: its definition, and the executor that runs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from rota.domain.errors import DefinitionError
from rota.domain.job import Definition
from rota.executors import kinds
from rota.executors.function import FunctionExecutor
from rota.executors.port import Executor
from rota.executors.signature import Signature

if TYPE_CHECKING:
    from rota.executors.process.pool import Pool


@dataclass(slots=True, eq=False)
class RegisteredJob:
    """The internal form of a `Job`, which a worker runs."""

    function: Callable[..., Any]
    signature: Signature
    definition: Definition
    target: Executor

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def is_function(self) -> bool:
        """Whether it runs its function; a command or a request does not."""
        return bool(self.definition.target.get("kind", kinds.PROCESS) == kinds.PROCESS)

    @property
    def function_executor(self) -> FunctionExecutor:
        """Calls the function with stored arguments, in this process."""
        if not self.is_function:
            raise DefinitionError(f"{self.name} has no function: it is {self.definition.target.get('kind')}")
        return cast("FunctionExecutor", self.target)

    def in_worker(self, pool: Pool) -> Executor:
        """In a process of the pool if the job asks for isolation."""
        return self.isolated(pool) if self.definition.target.get("kind") == kinds.PROCESS else self.target

    def isolated(self, pool: Pool) -> Executor:
        """In a process of its own, whether it asks for that or not, and with the limits that it has if it does."""
        from rota.executors.process.pool import ProcessExecutor  # lazy: only in a worker
        from rota.executors.process.warm_process import GRACE_S  # lazy: only in a worker

        target = self.definition.target
        memory, grace_s = target.get("memory_bytes"), target.get("grace_s", GRACE_S)
        return ProcessExecutor(pool, self.target.rules, memory_bytes=memory, grace_s=grace_s)
