"""The worker's side of the stage: commands are started, stopped and awaited here, and live over there."""

from __future__ import annotations

import array
import asyncio
import contextlib
import errno
import json
import os
import signal
import socket
import sys
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rota.executors import tree
from rota.executors.ended import Ended
from rota.executors.stage_main import PART

PROGRAM = str(Path(__file__).with_name("stage_main.py"))
RETRY_S = 0.05
NUDGE_S = 1.0
"""How often a stage that has work to do is told to go on, in case a command has stopped it."""
_FINAL = frozenset(
    {
        errno.ENOENT,
        errno.EACCES,
        errno.EPERM,
        errno.ENOEXEC,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.E2BIG,
        errno.EINVAL,
    }
)
"""What another attempt would meet again."""


class Refused(Exception):
    """A command was not started. `step` says what failed: the program, its directory, the fork, the descriptors."""

    def __init__(self, step: str, code: int) -> None:
        super().__init__(os.strerror(code))
        self.step = step
        self.code = code

    @property
    def is_final(self) -> bool:
        return self.step in ("program", "directory") and self.code in _FINAL


class Answer(msgspec.Struct, frozen=True):
    """What the stage says of one command."""

    say: str
    id: int
    pid: int = 0
    step: str = ""
    code: int = 0
    exit_code: int | None = None
    signal: int | None = None
    cpu_s: float = 0.0
    peak_bytes: int = 0
    out_of_memory: bool = False


class Spawned:
    """A command that was started."""

    def __init__(self, line: _Line, id: int) -> None:
        self._line = line
        self._id = id
        self._started: asyncio.Future[None] = line.loop.create_future()
        self._ended: asyncio.Future[Ended] = line.loop.create_future()
        self.pid = 0

    def stop(self, grace_s: float) -> None:
        """Asks the whole tree to end, and kills it if that takes longer than the grace."""
        self._tell({"do": "stop", "id": self._id, "grace_s": grace_s})

    def begin_anew(self, children_bytes: int) -> None:
        """What comes is the work of another: the most that it holds is counted from now on.

        `children_bytes` is the most that one of those held that the command has started and seen end before.
        """
        self._tell({"do": "begin_anew", "id": self._id, "children_bytes": children_bytes})

    def kill(self) -> None:
        self._tell({"do": "kill", "id": self._id})

    async def wait(self) -> Ended:
        """When the command has ended and nothing of its tree is left."""
        return await asyncio.shield(self._ended)

    async def outlasted(self) -> Ended:
        """`wait`, however often the one that waits is cancelled meanwhile."""
        await through(self._ended)
        return self._ended.result()

    @property
    def has_ended(self) -> bool:
        return self._ended.done()

    def _tell(self, message: dict[str, Any]) -> None:
        if not self._ended.done():
            self._line.send(message)

    async def _begin(self) -> None:
        try:
            await asyncio.shield(self._started)
        except asyncio.CancelledError:
            self.kill()
            await through(self._ended)
            if not self._started.cancelled():
                self._started.exception()  # Whatever it is, nobody asks any more.
            raise

    def _hear(self, answer: Answer) -> bool:
        """Returns whether that was the last word."""
        if answer.say == "spawned":
            self.pid = answer.pid
            self._started.set_result(None)
            return False
        if answer.say == "refused":
            self._started.set_exception(Refused(answer.step, answer.code))
            self._ended.set_result(Ended(error="it was not started"))
        else:
            self._ended.set_result(
                Ended(answer.exit_code, answer.signal, answer.cpu_s, answer.peak_bytes, answer.out_of_memory)
            )
        return True

    def _lose(self, error: str) -> None:
        """Nobody will answer any more. It may have run, so it counts as started even if that was not heard."""
        if not self._started.done():
            self._started.set_result(None)
        if not self._ended.done():
            self._ended.set_result(Ended(signal=signal.SIGKILL, error=error))


class Stage:
    """Starts commands by way of a process of its own, which is started when it is first needed."""

    def __init__(self) -> None:
        self._line: _Line | None = None
        self._is_closed = False
        self._others: weakref.WeakSet[Stage] = weakref.WeakSet()

    @property
    def pid(self) -> int | None:
        """The process that starts the commands, if it has been needed so far."""
        return None if self._line is None else self._line.pid

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    def apart(self) -> Stage:
        """Another one, which is closed with this one."""
        other = Stage()
        self._others.add(other)
        return other

    def start(self) -> None:
        """Starts the process, if there is none. From the thread of the event loop."""
        if self._is_closed:
            raise Refused("stage", errno.ESHUTDOWN)
        if self._line is None or self._line.is_lost:
            try:
                self._line = _Line()
            except OSError as error:
                raise Refused("stage", error.errno or 0) from None

    async def spawn(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str | None,
        stdout: int,
        stderr: int,
        fds: Sequence[int] = (),
        memory_bytes: int | None = None,
    ) -> Spawned:
        """Starts a command; it finds `fds` as its descriptors 3, 4 and so on. Raises Refused if it does not start.

        The caller's descriptors are its own again when this returns.
        """
        self.start()
        assert self._line is not None
        message = {"argv": list(argv), "env": dict(env), "cwd": cwd, "memory_bytes": memory_bytes}
        spawned = self._line.begin(message, [stdout, stderr, *fds])
        await spawned._begin()
        return spawned

    def close(self) -> None:
        """At once: the process on the other side kills all that it has started, and ends."""
        self._is_closed = True
        for other in list(self._others):
            other.close()
        if self._line is not None:
            self._line.close()

    abandon = close

    async def closed(self) -> None:
        """After `close`: when that process has ended, and so has everything that it started."""
        for other in list(self._others):
            await other.closed()
        if self._line is not None:
            await asyncio.shield(self._line.gone)

    def __del__(self) -> None:
        if self._line is not None:
            self._line.close()


class _Line:
    """One process of the stage, and the socket to it."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.is_lost = False
        self.gone: asyncio.Future[None] = self.loop.create_future()
        self._spawned: dict[int, Spawned] = {}
        self._count = 0
        self._is_nudged = False
        self._parts: deque[tuple[bytes, list[int]]] = deque()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._socket.setblocking(False)
            self.pid = _launch(theirs.fileno())
            self._handle = os.pidfd_open(self.pid)
        except BaseException:
            self._socket.close()
            raise
        finally:
            theirs.close()
        self._process = tree.read(self.pid)
        self.loop.add_reader(self._socket, self._listen)
        self.loop.add_reader(self._handle, self._bury)

    def begin(self, message: dict[str, Any], fds: list[int]) -> Spawned:
        self._count += 1
        spawned = self._spawned[self._count] = Spawned(self, self._count)
        try:
            self.send({"do": "spawn", "id": self._count, "fds": len(fds), **message}, fds)
        except OSError as error:
            del self._spawned[self._count]
            raise Refused("descriptors", error.errno or 0) from None
        self._go_on()
        return spawned

    def _go_on(self) -> None:
        """A command may do to the stage what its user may, and a stage that was stopped is of no use to any other."""
        if not self._is_nudged:
            self._is_nudged = True
            self.loop.call_later(NUDGE_S, self._nudge)

    def _nudge(self) -> None:
        self._is_nudged = False
        if self._handle >= 0 and (self._spawned or self.is_lost):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGCONT)
            self._go_on()

    def send(self, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
        """Sends now what the socket takes, and the rest as soon as it can."""
        if self.is_lost:
            return
        data = json.dumps(message).encode()  # Not msgspec, which has no words for what is not Unicode.
        if not self._parts and len(data) <= PART and self._is_taken(b"." + data, fds):
            return
        pieces = [data[start : start + PART] for start in range(0, len(data), PART)]
        # Descriptors that wait are copies: the caller may close its own at any time.
        copies = _copies(fds)
        self._parts.extend((b"+" + piece, []) for piece in pieces[:-1])
        self._parts.append((b"." + pieces[-1], copies))
        self._flush()

    def _is_taken(self, data: bytes, fds: Sequence[int]) -> bool:
        """Whether it went at once, as nearly all do."""
        try:
            self._socket.sendmsg([data], _rights(fds))
        except OSError:
            return False  # Whatever that is, the next try finds out.
        return True

    def _flush(self) -> None:
        if self.is_lost:
            return
        while self._parts:
            data, fds = self._parts[0]
            try:
                self._socket.sendmsg([data], _rights(fds))
            except BlockingIOError:
                self.loop.add_writer(self._socket, self._flush)
                return
            except ConnectionError:
                break  # The other side is gone, which is about to be heard.
            except OSError:
                # Too many descriptors are on their way, or the kernel is short of memory: both pass.
                self.loop.call_later(RETRY_S, self._flush)
                break
            self._parts.popleft()
            _close_all(fds)
        self.loop.remove_writer(self._socket)

    def _listen(self) -> None:
        while True:
            try:
                data = self._socket.recv(PART)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._lose()
                return
            answer = msgspec.json.decode(data, type=Answer)
            spawned = self._spawned.get(answer.id)
            if spawned is not None and spawned._hear(answer):
                del self._spawned[answer.id]

    def _lose(self) -> None:
        """The other side died. The kernel kills what it started, we kill what that has left behind."""
        self._hang_up()
        error = "the stage, which starts commands, died"
        try:
            sweep = self.loop.run_in_executor(None, _sweep, self._process)
        except RuntimeError:
            self._settle(error)  # The event loop is about to close.
        else:
            sweep.add_done_callback(lambda _: self._settle(error))

    def close(self) -> None:
        if not self.is_lost:
            self._hang_up()
            self._settle("the worker let go of it")

    def _hang_up(self) -> None:
        self.is_lost = True
        if not self.loop.is_closed():
            self.loop.remove_reader(self._socket)
            self.loop.remove_writer(self._socket)
            self._go_on()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # Also ends the copy of a process that was forked from this one.
        self._socket.close()
        while self._parts:
            _close_all(self._parts.popleft()[1])

    def _settle(self, error: str) -> None:
        for spawned in self._spawned.values():
            if not self.loop.is_closed():
                spawned._lose(error)
        self._spawned.clear()

    def _bury(self) -> None:
        self.loop.remove_reader(self._handle)
        os.close(self._handle)
        self._handle = -1
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)
        if not self.gone.done():
            self.gone.set_result(None)

    def __del__(self) -> None:
        if getattr(self, "_handle", -1) >= 0:
            os.close(self._handle)


_shared: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Stage] = weakref.WeakKeyDictionary()


def shared() -> Stage:
    """The one stage of the running event loop; a new one if the last was closed."""
    loop = asyncio.get_running_loop()
    stage = _shared.get(loop)
    if stage is None or stage.is_closed:
        stage = _shared[loop] = Stage()
    return stage


async def through(future: asyncio.Future[Any]) -> None:
    """Waits until `future` is done, however often the one that waits is cancelled meanwhile."""
    while not future.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([future])


def _launch(fd: int) -> int:
    places = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_DUP2, fd, 3),
    ]
    command = [sys.executable, "-I", "-S", PROGRAM, "3"]
    return os.posix_spawn(sys.executable, command, os.environ, file_actions=places)


def _sweep(stage: tree.Process | None) -> None:
    for _ in range(tree.MOST_ROUNDS):
        if stage is None or not tree.kill(lambda: tree.marked(stage)):
            return


def _rights(fds: Sequence[int]) -> list[tuple[int, int, array.array[int]]]:
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []


def _copies(fds: Sequence[int]) -> list[int]:
    copies: list[int] = []
    try:
        for fd in fds:
            copies.append(os.dup(fd))
    except OSError:
        _close_all(copies)
        raise
    return copies


def _close_all(fds: Sequence[int]) -> None:
    for fd in fds:
        with contextlib.suppress(OSError):
            os.close(fd)
