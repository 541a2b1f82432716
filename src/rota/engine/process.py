"""A child process as its supervisor sees it: started, told things, heard, ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Sequence

import msgspec

from rota.engine import tether, wire
from rota.engine.bridge import Bridge
from rota.engine.child import BLOCKED, LEAVING, Hello
from rota.engine.desk import Desk
from rota.engine.strays import AT_ONCE, end_strays
from rota.executors.ended import signal_name
from rota.ops.finish import Finished
from rota.store.hints import Hint


class ChildProcess:
    """The process, the pipe down to it and the pipe up from it."""

    def __init__(
        self, process: asyncio.subprocess.Process, words: asyncio.StreamReader, store_end: socket.socket
    ) -> None:
        self._process = process
        self._words = words
        self._store_end = store_end
        self._desk: Desk | None = None
        self._report: Finished | None = None
        self.pid = process.pid

    @classmethod
    async def spawn(cls, command: Sequence[str]) -> ChildProcess:
        """Starts `command` in a session of its own, so that a signal to the supervisor's group misses it."""
        ours, theirs = socket.socketpair()
        read, write = _pipe(ours, theirs)
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                "--words-fd",
                str(write),
                "--store-fd",
                str(theirs.fileno()),
                stdin=asyncio.subprocess.PIPE,
                pass_fds=(write, theirs.fileno()),
                start_new_session=True,
            )
        except BaseException:
            os.close(read)
            ours.close()
            raise
        finally:
            os.close(write)
            theirs.close()
        words = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(words)
        await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, os.fdopen(read, "rb"))
        return cls(process, words, ours)

    async def serve_store(self, bridge: Bridge) -> None:
        """Carries out what the child asks of the store, until it ends."""
        reader, writer = await asyncio.open_unix_connection(sock=self._store_end, limit=wire.BUFFER)
        self._desk = Desk(bridge, reader, writer)
        await self._desk.serve()

    def tell(self, hints: Sequence[Hint]) -> None:
        """Passes hints on to the child, once it has begun to work."""
        if self._desk is not None:
            self._desk.tell(hints)

    async def hello(self) -> Hello | None:
        """What the child has to say once it has imported the app; None if it died first."""
        line = await self._words.readline()
        return msgspec.json.decode(line, type=Hello) if line else None

    async def leaving(self) -> None:
        """Returns when the child says that it must be replaced; never, if it does not."""
        while (line := (await self._words.readline()).strip()) != LEAVING:
            if not line:
                await asyncio.Event().wait()
            self._heard(line)

    async def blocked(self) -> Finished | None:
        """After its end: what it said of an attempt that held its event loop, if anything."""
        while line := (await self._words.readline()).strip():
            self._heard(line)
        return self._report

    def _heard(self, line: bytes) -> None:
        if line.startswith(BLOCKED):
            with contextlib.suppress(ValueError, msgspec.DecodeError):
                self._report = wire.read_report(line.removeprefix(BLOCKED))

    def send(self, line: bytes) -> None:
        if self._process.stdin is not None:
            with contextlib.suppress(OSError, RuntimeError):  # A child that is gone needs no word; its end is seen.
                self._process.stdin.write(line + b"\n")

    def hold_until(self, until: float) -> None:
        """Its lease holds until then, by the clock that all processes of the machine share."""
        self.send(f"{tether.UNTIL}{until}".encode())

    async def wait(self) -> int:
        """Its exit code, when it has ended. Its stage has ended what it ran, or was killed as well; then we do it."""
        code = await self._process.wait()
        if code < 0:
            await end_strays(AT_ONCE)
        return code

    def close(self) -> None:
        self._store_end.close()

    def kill(self) -> None:
        """Ends the child and everything that it started in its group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)


def _pipe(*sockets: socket.socket) -> tuple[int, int]:
    """A pipe; if there is none to be had, the sockets are closed as well."""
    try:
        return os.pipe()
    except OSError:
        for one in sockets:
            one.close()
        raise


def ending(code: int) -> str:
    """An exit code in words."""
    if code < 0:
        return f"was killed by {signal_name(-code)}"
    return f"ended with exit code {code}"
