"""The machine of a supervisor, and its children as real processes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Callable, Sequence

import msgspec

from rota.engine import standstill, tether, wire
from rota.engine.host import STILL_OPEN_S, Ending, Hello
from rota.engine.port import WorkerPort
from rota.engine.wire import Saw, WireServer
from rota.executors.process import spawner
from rota.executors.process.spawner import Spawner
from rota.ops.finish import Finished
from rota.store.hints import Hint

log = logging.getLogger("rota.engine")

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
REPLACED_S = 1.0
"""A child that is alive this long after its socket was closed is not exiting: os.exec has replaced its program."""

_read_hello = msgspec.json.Decoder(Hello).decode
_read_report = msgspec.json.Decoder(Finished).decode


class ChildProcess:
    """Implements `engine.host.Child`: the process, its messages (see `tether`), and a socket for the store."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        words: asyncio.StreamReader,
        words_end: asyncio.StreamWriter,
        store_end: socket.socket,
        let_live: Callable[[int, float], None],
    ) -> None:
        """`let_live(pid, until)` is called when the lease holds for longer."""
        self._process = process
        self._let_live = let_live
        self._words, self._words_end = words, words_end
        self._store_end = store_end
        self._server: WireServer | None = None
        self._announced: bytes | None = None
        self._is_replaced = False
        self.blocked: Finished | None = None
        self.pid = process.pid

    @classmethod
    async def spawn(
        cls,
        command: Sequence[str],
        spawns: Spawner | None = None,
        let_live: Callable[[int, float], None] = lambda pid, until: None,
    ) -> ChildProcess:
        """Starts `command` in a session of its own, so that a signal to the supervisor's group misses it.

        `spawns` starts the commands and isolated jobs of the child.
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
            child = cls(process, *await asyncio.open_unix_connection(sock=words), store, let_live)
            ours.pop_all()
            return child

    async def serve_store(self, store: WorkerPort, saw: Saw = lambda verb, arguments, answer: None) -> None:
        server = WireServer(store, saw)
        await asyncio.get_running_loop().create_unix_connection(lambda: server, sock=self._store_end)
        self._server = server
        try:
            await server.serve()
        except wire.TooLong as error:
            log.error("worker process %d sent %s: killing it", self.pid, error)
            self.kill()

    def tell(self, hints: Sequence[Hint]) -> None:
        if self._server is not None:
            self._server.tell(hints)

    @property
    def is_busy(self) -> bool:
        return self._server is not None and self._server.is_busy

    async def hello(self) -> Hello | None:
        line = await self._words.readline()
        return _read_hello(line) if line else None

    async def leaving(self) -> None:
        while (line := await self._line()) != tether.LEAVING:
            if not line:
                await self._end_replaced()
            self._heard(line)

    async def ended(self, code: int) -> Ending:
        """Reads the last messages of an ended child: it announced its exit code there if it left in order."""
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
        """The next line; empty at the end of the stream. Data longer than the reader's limit is dropped.

        User code can write to this socket, so a megabyte without a newline must not end the reading.
        """
        while True:
            with contextlib.suppress(ValueError):  # The reader has dropped what exceeds its limit.
                line = await self._words.readline()
                if not line or line.strip():
                    return line.strip()

    def _heard(self, line: bytes) -> None:
        if line.startswith(tether.REPORT):
            with contextlib.suppress(ValueError):  # Not msgpack, or not UTF-8.
                self.blocked = _read_report(line.removeprefix(tether.REPORT))
        elif line.startswith(tether.EXIT):
            self._announced = line.removeprefix(tether.EXIT)

    def send(self, line: bytes) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, RuntimeError):  # The child is gone, and its end is noticed elsewhere.
            self._process.stdin.write(line + b"\n")

    def hold_until(self, until: float) -> None:
        self.send(tether.UNTIL + str(until).encode())
        self._let_live(self.pid, until)

    async def wait(self) -> int:
        return await self._process.wait()

    def close(self) -> None:
        """Needed even after the child's end: a process that it has forked may hold the other ends open."""
        self._store_end.close()
        self._words_end.close()

    def kill(self) -> None:
        """Kills the process and what it has started. After its end, only what it has started.

        The system does not reuse a process id while a process group has it. So a process with the id of an ended child
        is another one, and no process of the child's group is left.
        """
        if self._process.returncode is not None and _exists(self.pid):
            return
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
        def let_live(pid: int, until: float) -> None:
            self._spawner.hold(pid, until + self._slack_s)

        return await ChildProcess.spawn(command, self._spawner, let_live)

    def on_signal(self, stop: Callable[[], None]) -> None:
        for number in STOPPING:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup makes us ignore SIGHUP on purpose.
                asyncio.get_running_loop().add_signal_handler(number, stop)

    def state(self, pid: int) -> standstill.ProcessState:
        return standstill.process_state(pid)

    async def close(self) -> None:
        self._spawner.close()
        await self._spawner.closed()


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)
    return True


def _pair(*ends: contextlib.ExitStack) -> list[socket.socket]:
    """Two sockets that are connected, each of which is closed with its stack."""
    return [end.enter_context(one) for end, one in zip(ends, socket.socketpair(), strict=True)]
