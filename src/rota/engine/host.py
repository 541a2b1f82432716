"""What a supervisor needs of its machine: start a child, tell it things, kill it, hear of its end.

`engine.process` implements this with real processes; the simulation with processes that live on a virtual event loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from rota.clock import Clock
from rota.engine import tether
from rota.engine.loop import Loop
from rota.engine.port import WorkerStore
from rota.engine.wire_server import Saw
from rota.executors.process.spawned import signal_name
from rota.ops.finish import Finished
from rota.store.hints import Hint

DRAIN = b"drain"
FINISH = b"finish"
"""Claim nothing more, and end when the running attempts have ended by themselves."""
STILL_OPEN_S = 0.5
"""How long to read the streams of a child after its end: a process that it has forked may keep them open."""


class Hello(msgspec.Struct, frozen=True):
    """The first message of a child: its app and where that lives, or why it cannot work."""

    app: str = ""
    namespace: str = ""
    url: str = ""
    jobs: list[str] = []
    """The jobs that it can run."""
    error: str = ""
    deploy: int | None = None


class Ending(msgspec.Struct, frozen=True):
    """How a child ended. Only a code that it announced says why: jobs can end their process with any code."""

    code: int
    is_announced: bool = False
    is_replaced: bool = False
    """A job has replaced the program of the child by another one (os.exec), and we have killed it."""

    @property
    def is_in_order(self) -> bool:
        return self.is_announced and self.code in (tether.DRAINED, tether.RECYCLE, tether.BLOCKED)

    @property
    def has_lost_lease(self) -> bool:
        return self.is_announced and self.code == tether.LEASE_LOST

    def __str__(self) -> str:
        if self.is_replaced:
            return "ran another program, in the middle of its work (os.exec?), and was killed"
        if self.code < 0:
            return f"was killed by {signal_name(-self.code)}"
        unexpected = "" if self.is_announced else ", in the middle of its work (os._exit, os.exec or exit() in C?)"
        return f"ended with exit code {self.code}{unexpected}"


class Child(Protocol):
    """One child of a supervisor."""

    pid: int
    blocked: Finished | None
    """The report of the attempt that held the event loop of the child, if the child sent one."""

    async def hello(self) -> Hello | None:
        """The child's first message, once it has imported the app; None if it died first."""

    def send(self, line: bytes) -> None:
        """Its place, `DRAIN`, `FINISH`, or what `tether` understands."""

    def hold_until(self, until: float) -> None:
        """Its lease holds until then, by the clock that all processes of the machine share."""

    async def serve_store(self, store: WorkerStore, saw: Saw) -> None:
        """Carries out the child's verbs until it hangs up."""

    def tell(self, hints: Sequence[Hint]) -> None:
        """Passes hints on to the child, once it has begun to work."""

    async def leaving(self) -> None:
        """Returns when the child says that it must be replaced; never, if it does not."""

    async def wait(self) -> int:
        """Its exit code, when it has ended."""

    async def ended(self, code: int) -> Ending:
        """After `wait`: how it ended."""

    def kill(self) -> None:
        """Ends the child and everything that it started in its group."""

    def close(self) -> None:
        """Releases what is left of an ended child."""


class Host(Protocol):
    """The machine of a supervisor."""

    name: str
    pid: int
    """Of the supervisor itself."""

    async def start(self, command: Sequence[str]) -> Child:
        """Raises OSError if the machine has no process or no descriptor for it now."""

    def on_signal(self, stop: Callable[[], None]) -> None:
        """Calls `stop` for each signal that asks the supervisor to stop."""

    def hold(self, child: Child, until: float) -> None:
        """Lets the child live until then, even if the supervisor itself cannot end it."""

    def watch(
        self,
        clock: Clock,
        lease_s: float,
        pids: Callable[[], Mapping[int, int]],
        tell: Callable[[int, str], Awaitable[None]],
        end: Callable[[int, str], None],
    ) -> Sequence[Loop]:
        """Loops that find children which the kernel does not run.

        `pids()` maps workers to their processes; `tell(worker, why)` reports a standstill, `end(worker, why)` one that
        outlasts the lease.
        """

    async def close(self) -> None:
        """Ends whatever the children have started."""
