"""The port of a supervisor to its machine: start a child, send it messages, kill it, and learn how it ended.

`engine.process` implements this with real processes; the simulation with processes that live on a virtual event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from rota.engine import tether
from rota.engine.port import WorkerPort
from rota.engine.standstill import ProcessState
from rota.engine.wire import Saw
from rota.executors.process.spawned import signal_name
from rota.ops.finish import Finished
from rota.store.hints import Hint

STILL_OPEN_S = 0.5
"""How long to read the streams of a child after its end: a process that it has forked may keep them open."""


class Hello(msgspec.Struct, frozen=True):
    """The first message of a child: its app and its database, or the error that keeps it from working."""

    app: str = ""
    namespace: str = ""
    others: list[str] = []
    """Further namespaces that it serves."""
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
        """Its `Assignment`, or one of the messages in `tether`."""

    def hold_until(self, until: float) -> None:
        """Its lease holds until then, by the clock that all processes of the machine share. It dies soon after, even if
        the supervisor itself cannot end it."""

    async def serve_store(self, store: WorkerPort, saw: Saw) -> None:
        """Carries out the child's verbs until it hangs up."""

    def tell(self, hints: Sequence[Hint]) -> None:
        """Makes the claim that the child has left, or passes the hints on to the child. Does nothing before
        `serve_store`."""

    @property
    def is_busy(self) -> bool:
        """Whether a verb of the child is being carried out. A claim that waits for a hint does not count."""

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

    def state(self, pid: int) -> ProcessState:
        """Whether the kernel runs the process."""

    async def close(self) -> None:
        """Kills the processes that the children have started."""
