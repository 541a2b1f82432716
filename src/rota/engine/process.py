"""The machine as a supervisor has it, and its children as real processes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from rota.clock import Clock
from rota.engine import tether, wire
from rota.engine.child import BLOCKED, EXIT, LEAVING
from rota.engine.host import STILL_OPEN_S, Child, Ending, Hello
from rota.engine.loop import Loop
from rota.engine.port import WorkerStore
from rota.engine.standstill import Standstill
from rota.engine.wire_server import Saw, WireServer
from rota.executors.process import spawner
from rota.executors.process.spawner import Spawner
from rota.ops.finish import Finished
from rota.store.hints import Hint

log = logging.getLogger("rota.engine")

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
REPLACED_S = 1.0
"""A child that is alive this long after its socket was closed is not exiting: os.exec has replaced its program."""

_decode = msgspec.json.Decoder(Hello).decode


class ChildProcess:
    """Implements `engine.host.Child`: the process, the pipe down to it, and two sockets up from it.

    One socket is for its messages, one for the store.
    """

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        words: asyncio.StreamReader,
        words_end: asyncio.StreamWriter,
        store_end: socket.socket,
    ) -> None:
        self._process = process
        self._words, self._words_end = words, words_end
        self._store_end = store_end
        self._server: WireServer | None = None
        self._announced: bytes | None = None
        self._is_replaced = False
        self.blocked: Finished | None = None
        self.pid = process.pid

    @classmethod
    async def spawn(cls, command: Sequence[str], spawns: Spawner | None = None) -> ChildProcess:
        """Starts `command` in a session of its own, so that a signal to the supervisor's group misses it.

        `spawns` starts the commands and isolated jobs of the child, and kills it when its lease has ended.
        """
        with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
            # Sockets, not pipes: uvloop closes the descriptor of a pipe twice, and in between another thread may have
            # opened a file under that number, such as the database.
            (words, words_there), (store, store_there) = _pair(ours, theirs), _pair(ours, theirs)
            spawner_end, spawner_there = map(theirs.enter_context, spawner.pair())
            fds = {"--words-fd": words_there, "--store-fd": store_there, "--spawner-fd": spawner_there}
            options = [word for name, end in fds.items() for word in (name, str(end.fileno()))]
            options += ["--spawner-pid", str(spawns.ready() if spawns is not None else 0)]
            process = await asyncio.create_subprocess_exec(
                *command,
                *options,
                stdin=asyncio.subprocess.PIPE,
                pass_fds=[end.fileno() for end in fds.values()],
                start_new_session=True,
            )
            if spawns is not None:
                spawns.serve(process.pid, spawner_end)
            child = cls(process, *await asyncio.open_unix_connection(sock=words), store)
            ours.pop_all()
            return child

    async def serve_store(self, store: WorkerStore, saw: Saw = lambda verb, arguments, answer: None) -> None:
        reader, writer = await asyncio.open_unix_connection(sock=self._store_end, limit=wire.BUFFER)
        self._server = WireServer(store, reader, writer, saw)
        try:
            await self._server.serve()
        except wire.TooLong as error:
            log.error("worker process %d sent %s: killing it", self.pid, error)
            self.kill()

    def tell(self, hints: Sequence[Hint]) -> None:
        if self._server is not None:
            self._server.tell(hints)

    async def hello(self) -> Hello | None:
        line = await self._words.readline()
        return _decode(line) if line else None

    async def leaving(self) -> None:
        while (line := await self._line()) != LEAVING:
            if not line:
                await self._end_replaced()
            self._heard(line)

    async def ended(self, code: int) -> Ending:
        """Reads the rest of the words of an ended child: it announced its exit code there if it left in order."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STILL_OPEN_S):
                while line := await self._line():
                    self._heard(line)
        return Ending(code, self._announced == str(code).encode(), self._is_replaced and code < 0)

    async def _end_replaced(self) -> None:
        """Kills a child whose socket was closed by exec, not by its exit. Never returns: `ended` is next.

        Such a process would hold its executions for as long as the other program runs: our lease is renewed for it, and
        it hears of no timeout or cancel.
        """
        await asyncio.sleep(REPLACED_S)
        self._is_replaced = True
        self.kill()
        await asyncio.Event().wait()

    async def _line(self) -> bytes:
        """The next line; empty at the end of the words. Data longer than the reader's limit is dropped.

        User code can write to this socket, so a megabyte without a newline must not end the reading.
        """
        while True:
            with contextlib.suppress(ValueError):  # The reader has dropped what exceeds its limit.
                line = await self._words.readline()
                if not line or line.strip():
                    return line.strip()

    def _heard(self, line: bytes) -> None:
        if line.startswith(BLOCKED):
            with contextlib.suppress(ValueError, msgspec.DecodeError):
                self.blocked = wire.read_report(line.removeprefix(BLOCKED))
        elif line.startswith(EXIT):
            self._announced = line.removeprefix(EXIT)

    def send(self, line: bytes) -> None:
        if self._process.stdin is not None:
            with contextlib.suppress(OSError, RuntimeError):  # A child that is gone needs no word; its end is seen.
                self._process.stdin.write(line + b"\n")

    def hold_until(self, until: float) -> None:
        self.send(f"{tether.UNTIL}{until}".encode())

    async def wait(self) -> int:
        return await self._process.wait()

    def close(self) -> None:
        """A process that the child has forked may hold the other ends open."""
        self._store_end.close()
        self._words_end.close()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)


class LocalHost:
    """Implements `engine.host.Host`."""

    def __init__(self, slack_s: float) -> None:
        """`slack_s` is how long a child has, after the end of its lease, to let go by itself."""
        self.name = socket.gethostname()
        self.pid = os.getpid()
        self._slack_s = slack_s
        self._spawner = Spawner()

    async def start(self, command: Sequence[str]) -> ChildProcess:
        return await ChildProcess.spawn(command, self._spawner)

    def on_signal(self, stop: Callable[[], None]) -> None:
        for number in STOPPING:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup makes us ignore SIGHUP, and that is meant.
                asyncio.get_running_loop().add_signal_handler(number, stop)

    def hold(self, child: Child, until: float) -> None:
        self._spawner.hold(child.pid, until + self._slack_s)

    def watch(
        self,
        clock: Clock,
        lease_s: float,
        pids: Callable[[], Mapping[int, int]],
        tell: Callable[[int, str], Awaitable[None]],
        end: Callable[[int, str], None],
    ) -> Sequence[Loop]:
        return [Standstill(clock, lease_s, pids, tell, end).loop]

    async def close(self) -> None:
        self._spawner.close()
        await self._spawner.closed()


def _pair(*ends: contextlib.ExitStack) -> list[socket.socket]:
    """Two sockets that are connected, each of which is closed with its stack."""
    return [end.enter_context(one) for end, one in zip(ends, socket.socketpair(), strict=True)]
