"""Starts, stops and awaits processes by way of a spawner, a small process of its own (`spawner_main.py`).

A supervisor has one spawner, and gives each worker process a socket to it. A process without such a socket, or whose
spawner has died, launches one of its own. So does each suspect, which may have killed the last one.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import logging
import os
import signal
import socket
import sys
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rota.executors.process import process_tree
from rota.executors.process.protect_secrets import bare_environment
from rota.executors.process.spawned import Spawned, decode
from rota.executors.process.spawner_main import PART, SOCKET_FD
from rota.executors.process.started_processes import Refused

log = logging.getLogger("rota.engine")

PROGRAM = str(Path(__file__).with_name("spawner_main.py"))
RETRY_S = 0.01
CLOSED_S = 15.0
LAST_S = 1.0
"""How long the kernel may take to end a spawner after it has closed the spawner's sockets."""


class Spawner:
    """The spawner of this process: the supervisor's, or one that is launched when it is first needed."""

    def __init__(self, inherited: tuple[int, int] | None = None) -> None:
        """`inherited` is the descriptor of a socket to the supervisor's spawner, and the pid of that spawner."""
        self._inherited = inherited
        self._connection: _Connection | None = None
        self.is_closed = False

    @property
    def pid(self) -> int | None:
        """The pid of the spawner's process, if it was needed so far."""
        return None if self._connection is None else self._connection.pid

    def start(self) -> None:
        """Launches the process, if there is none. From the thread of the event loop."""
        if self.is_closed:
            raise Refused("spawner", errno.ESHUTDOWN)
        if self._connection is None or self._connection.is_lost:
            try:
                self._connection = self._connect()
            except OSError as error:
                raise Refused("spawner", error.errno or 0) from None

    def _connect(self) -> _Connection:
        inherited, self._inherited = self._inherited, None
        if inherited is not None:
            with contextlib.suppress(OSError):  # That spawner has died.
                return _Connection(socket.socket(fileno=inherited[0]), inherited[1])
        return _Connection(*_launched())

    async def spawn(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str | None,
        stdout: int,
        stderr: int,
        stdin: int | None = None,
        memory_bytes: int | None = None,
    ) -> Spawned:
        """Starts a program, without input if `stdin` is None. Raises Refused if it does not start.

        The caller must keep the descriptors open until this returns.
        """
        self.start()
        assert self._connection is not None
        message = {"argv": list(argv), "env": dict(env), "cwd": cwd, "memory_bytes": memory_bytes}
        spawned = self._connection.begin(message, [stdout, stderr] if stdin is None else [stdout, stderr, stdin])
        await spawned.wait_started()
        return spawned

    def ready(self) -> int:
        """The pid of the spawner's process, which is launched if need be; 0 if it cannot be launched now."""
        with contextlib.suppress(Refused):
            self.start()
        return 0 if self._connection is None or self._connection.is_lost else self._connection.pid

    def serve(self, pid: int, end: socket.socket) -> None:
        """Makes the spawner serve a worker process on this socket, until that process ends."""
        self._post({"do": "hold", "pid": pid, "until": None}, end)

    def hold(self, pid: int, until: float) -> None:
        """The worker process may live until then. It also watches its lease itself (`tether`)."""
        self._post({"do": "hold", "pid": pid, "until": until})

    def _post(self, message: dict[str, Any], *ends: socket.socket) -> None:
        with contextlib.suppress(Refused):
            self.start()
            assert self._connection is not None
            self._connection.post(message, [end.fileno() for end in ends])
            self._connection.signal(signal.SIGCONT)  # A command may have stopped the spawner, which has the same user.

    def close(self) -> None:
        """Kills all processes that were started, at once. A spawner that this process has launched ends."""
        self.is_closed = True
        if self._connection is not None:
            self._connection.close()

    async def closed(self) -> None:
        """After `close`: waits until a spawner that this process has launched has ended, with all its processes.

        A spawner that does not end, as when a file system hangs, is killed.
        """
        if self._connection is not None:
            await asyncio.wait([self._connection.ended], timeout=CLOSED_S)
            self._connection.signal(signal.SIGKILL)

    def __del__(self) -> None:
        if self._connection is not None:
            self._connection.close()


class _Connection:
    """The socket to one spawner process."""

    def __init__(self, end: socket.socket, pid: int) -> None:
        self.loop = asyncio.get_running_loop()
        self.pid = pid
        self.is_lost = False
        self.ended: asyncio.Future[None] = self.loop.create_future()
        self._socket = end
        self._spawned: dict[int, Spawned] = {}
        self._count = 0
        self._unsent: deque[tuple[bytes, Sequence[int]]] = deque()
        try:
            end.setblocking(False)
            self._pidfd = os.pidfd_open(pid)
        except BaseException:
            end.close()
            raise
        self.loop.add_reader(end, self._receive)
        self.loop.add_reader(self._pidfd, self._reap)

    def begin(self, message: dict[str, Any], fds: list[int]) -> Spawned:
        self._count += 1
        spawned = self._spawned[self._count] = Spawned(self._count, self.send)
        self.send({"do": "spawn", "id": self._count, "fds": len(fds), **message}, fds)
        return spawned

    def signal(self, number: signal.Signals) -> None:
        if self._pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)

    def send(self, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
        """Sends the message, or queues it while the socket is full."""
        if self.is_lost:
            return
        data = json.dumps(message).encode()  # Not msgspec, which refuses text that is not Unicode.
        pieces = [data[start : start + PART] for start in range(0, len(data), PART)]
        is_waiting = bool(self._unsent)
        self._unsent.extend((b"+" + piece, ()) for piece in pieces[:-1])
        self._unsent.append((b"." + pieces[-1], fds))
        if not is_waiting:
            self._flush()

    def post(self, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
        """Sends a short message, or drops it if the socket is full: for messages that are repeated, or not vital."""
        if not self.is_lost:
            with contextlib.suppress(OSError):
                socket.send_fds(self._socket, [b"." + json.dumps(message).encode()], list(fds))

    def _flush(self) -> None:
        while self._unsent and not self.is_lost:
            data, fds = self._unsent[0]
            try:
                socket.send_fds(self._socket, [data], list(fds))
            except ConnectionError:
                return  # The spawner is gone, which `_receive` is about to read.
            except OSError:
                # The socket is full, too many descriptors are in flight, or the kernel is short of memory.
                self.loop.call_later(RETRY_S, self._flush)
                return
            self._unsent.popleft()

    def _receive(self) -> None:
        while True:
            try:
                data = self._socket.recv(PART)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._disconnect()
                self._sweeping = self.loop.create_task(self._sweep())
                return
            answer = decode(data)
            spawned = self._spawned.get(answer.id)
            if spawned is not None and spawned.receive(answer):
                del self._spawned[answer.id]

    async def _sweep(self) -> None:
        """After the spawner died: kills the processes that it has started, and reports them as lost."""
        try:
            await asyncio.wait([self.ended], timeout=LAST_S)
            with contextlib.suppress(RuntimeError):  # The event loop is about to close.
                await end_left_behind()
        finally:
            self._report_lost("the spawner, which starts processes, died")

    def close(self) -> None:
        if not self.is_lost:
            self._disconnect()
            self._report_lost("the worker has closed its spawner")

    def _disconnect(self) -> None:
        self.is_lost = True
        if not self.loop.is_closed():
            self.loop.remove_reader(self._socket)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # A forked copy of this process may hold it open.
        self._socket.close()
        self._unsent.clear()
        self.signal(signal.SIGCONT)

    def _report_lost(self, error: str) -> None:
        for spawned in self._spawned.values():
            if not self.loop.is_closed():
                spawned.set_lost(error)
        self._spawned.clear()

    def _reap(self) -> None:
        self.loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._pidfd = -1
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)
        if not self.ended.done():
            self.ended.set_result(None)

    def __del__(self) -> None:
        if getattr(self, "_pidfd", -1) >= 0:
            os.close(self._pidfd)


async def end_left_behind() -> None:
    """Kills the processes that killed spawners have left behind."""
    if count := await asyncio.to_thread(process_tree.kill, process_tree.left_behind):
        log.warning("ended %d processes that a killed worker had left behind", count)


_shared: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Spawner] = weakref.WeakKeyDictionary()
_inherited: tuple[int, int] | None = None


def inherit(fd: int, pid: int) -> None:
    """Gives `shared` a socket to the supervisor's spawner."""
    global _inherited
    os.set_inheritable(fd, False)
    _inherited = fd, pid


def shared() -> Spawner:
    """The spawner of the running event loop; a new one if the last was closed."""
    global _inherited
    loop = asyncio.get_running_loop()
    spawner = _shared.get(loop)
    if spawner is None or spawner.is_closed:
        spawner = _shared[loop] = Spawner(_inherited)
        _inherited = None
    return spawner


def pair() -> tuple[socket.socket, socket.socket]:
    """The two ends of a socket between a spawner and a process that it serves."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def _launched() -> tuple[socket.socket, int]:
    ours, theirs = pair()
    places = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_DUP2, theirs.fileno(), SOCKET_FD),
    ]
    command = [sys.executable, "-I", "-S", PROGRAM, str(os.getpid())]
    try:
        return ours, os.posix_spawn(sys.executable, command, bare_environment(), file_actions=places)
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
