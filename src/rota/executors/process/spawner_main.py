"""The program of a spawner: a small process that starts, watches and ends other processes for its owner.

supervisor ──┬── spawner ──┬── command ── what it starts
             │             └── process for isolated jobs
             └── worker process

It runs no user code and has one thread, so it can always start processes, and it outlives its owner for a moment: when
the owner's end of its socket closes, it kills everything and exits. Each worker process has a socket of its own; what
it has asked for is killed when it ends.

A spawner is also the dead man's switch of its supervisor. A worker process whose lease nobody renews exits by itself,
but not while a job holds the interpreter. Then the supervisor kills it, unless that stands still as well. So the
supervisor says until when each worker process may live, and the spawner kills those that live longer.

One packet is one message, or a part of a long one: a letter (`+` if more follows, `.` if not) and JSON. Descriptors
travel with the last part. The program is run by its path, with nothing but the standard library.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import errno
import functools
import json
import math
import os
import selectors
import signal
import socket
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if not TYPE_CHECKING and __name__ == "__main__":
    # Last, so that no neighbour takes the place of a module of the standard library.
    sys.path.append(os.path.abspath(os.path.join(__file__, *[os.pardir] * 4)))  # noqa: PTH118

from rota.clock import Clock, SystemClock
from rota.executors.process import hiding
from rota.executors.process.started_processes import LOOK_S, Refused, Started, StartedProcesses

PART = 48 * 1024
MOST_FDS = 8
_SPACE = socket.CMSG_SPACE(MOST_FDS * array.array("i").itemsize)
FULL_S = 0.02
"""How long the spawner waits before it writes again to a socket that had no space."""
LAST_S = 10.0
"""How long the spawner waits at its end for processes that the kernel cannot end yet."""
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_UNHEEDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGQUIT, signal.SIGTSTP)


class Line:
    """The socket of a process that asks for others: of the owner, or of a worker process."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self.end = end
        self.parts: list[bytes] = []
        self.answers: list[bytes] = []
        self.started: dict[int, Started] = {}
        """By the ids that the asking process has given them."""


class Worker:
    """A worker process, and until when it may live."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.handle = os.pidfd_open(pid)
        self.until = math.inf
        self.line: Line | None = None

    def kill(self) -> None:
        """With its group, as the supervisor does: the pid is its own until the supervisor has reaped it."""
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self.handle, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)


class Spawner:
    """Serves its owner and the owner's worker processes."""

    def __init__(self, owner: Line, owner_pid: int, wakeup: socket.socket, clock: Clock) -> None:
        self._owner = owner
        self._owner_pid = owner_pid
        self._wakeup = wakeup
        self._clock = clock
        self._started = StartedProcesses(clock.monotonic)
        self._workers: dict[int, Worker] = {}
        self._full: set[Line] = set()
        """Sockets that had no space for all answers."""
        self._selector = selectors.DefaultSelector()
        self._watch(wakeup, self._reap)
        self._watch(owner.end, functools.partial(self._serve, owner))

    def run(self) -> None:
        """Until the owner closes its end, or is gone while a process that it has forked holds that end.

        The parent-death signal then ends the `select`.
        """
        try:
            while os.getppid() == self._owner_pid:
                for key, events in self._selector.select(self._idle_s()):
                    key.data(events)
                self._act()
        except EOFError:
            pass
        self._end_all()

    def _watch(self, fd: int | socket.socket, act: Callable[[int], None]) -> None:
        self._selector.register(fd, selectors.EVENT_READ, act)

    def _idle_s(self) -> float | None:
        """How long there is nothing to do unless a message comes or a process ends."""
        if self._full:
            return FULL_S
        due_at = min([self._started.due_at, *(worker.until for worker in self._workers.values())])
        return None if due_at == math.inf else max(0.0, due_at - self._clock.monotonic())

    def _act(self) -> None:
        now = self._clock.monotonic()
        full, self._full = self._full, set()
        for line in full:
            self._flush(line)
        self._started.act(now)
        if any(worker.until <= now for worker in self._workers.values()):
            self._serve(self._owner)  # If this process was stopped for a while, a longer lease may wait to be read.
            for worker in [worker for worker in self._workers.values() if worker.until <= now]:
                worker.kill()
                self._forget(worker)

    def _reap(self, _: int) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._wakeup.recv(4096):
                pass
        self._started.reap()

    def _end_all(self) -> None:
        for worker in self._workers.values():
            worker.kill()
        waiting = selectors.DefaultSelector()
        waiting.register(self._wakeup, selectors.EVENT_READ)
        give_up_at = self._clock.monotonic() + LAST_S
        while self._started.kill_all() and self._clock.monotonic() < give_up_at:
            waiting.select(LOOK_S)
            self._reap(0)

    # --- Messages -------------------------------------------------------------------------------------

    def _serve(self, line: Line, _: int = 0) -> None:
        while line.end.fileno() >= 0:
            try:
                data, fds, is_cut = _receive(line.end)
            except BlockingIOError:
                return
            except OSError:
                data, fds, is_cut = b"", [], False
            if not data:
                self._hang_up(line)
                return
            line.parts.append(data[1:])
            if data[:1] != b"+":
                parts, line.parts = line.parts, []
                try:
                    self._obey(line, json.loads(b"".join(parts)), fds, is_cut)
                except (ValueError, LookupError, TypeError, RecursionError):
                    self._hang_up(line)  # User code has written to the socket of its worker process.
            for fd in fds:
                os.close(fd)

    def _hang_up(self, line: Line) -> None:
        """The process that has asked is gone, and with it the purpose of what was started for it."""
        if line is self._owner:
            raise EOFError
        if line.end.fileno() >= 0:
            self._selector.unregister(line.end)
            line.end.close()
            for started in list(line.started.values()):
                self._started.kill(started)

    def _obey(self, line: Line, message: dict[str, Any], fds: list[int], is_cut: bool) -> None:
        match message["do"]:
            case "spawn":
                try:
                    if is_cut or len(fds) != message["fds"]:
                        raise Refused("descriptors", errno.EMFILE)
                    self._spawn(line, message, fds)
                except Refused as refused:
                    self._say(line, {"id": message["id"], "step": refused.step, "code": refused.code})
            case "hold" if line is self._owner:
                self._hold(message["pid"], message["until"], fds)
            case "stop" if (started := line.started.get(message["id"])) is not None:  # It may have just ended.
                if message["grace_s"] > 0:
                    self._started.stop(started, message["grace_s"])
                else:
                    self._started.kill(started)
            case _:
                pass

    def _spawn(self, line: Line, message: dict[str, Any], fds: list[int]) -> None:
        id = message["id"]

        def report(account: dict[str, Any]) -> None:
            del line.started[id]
            self._say(line, {"id": id, "ended": account})

        command = (message["argv"], message["env"], message["cwd"])
        started = line.started[id] = self._started.start(*command, fds, message["memory_bytes"], report)
        self._say(line, {"id": id, "pid": started.pid})

    def _say(self, line: Line, message: dict[str, Any]) -> None:
        line.answers.append(json.dumps(message).encode())
        if len(line.answers) == 1:
            self._flush(line)

    def _flush(self, line: Line) -> None:
        """Sends the answers; those for which the socket has no space are tried again soon."""
        with contextlib.suppress(BlockingIOError):
            while line.answers and line.end.fileno() >= 0:
                with contextlib.suppress(ConnectionError):  # The process is gone, which is about to be read.
                    line.end.send(line.answers[0])
                del line.answers[0]
        if line.answers:
            self._full.add(line)

    # --- Worker processes -----------------------------------------------------------------------------

    def _hold(self, pid: int, until: float | None, fds: list[int]) -> None:
        """The worker process may live until then. A descriptor is the socket on which it asks for others."""
        worker = self._workers.get(pid)
        if worker is None:
            try:
                worker = self._workers[pid] = Worker(pid)
            except OSError:
                return  # It has ended.
            self._watch(worker.handle, functools.partial(self._ended, worker))
        worker.until = math.inf if until is None else until
        if fds:
            line = worker.line = Line(socket.socket(fileno=fds.pop()))
            self._watch(line.end, functools.partial(self._serve, line))

    def _ended(self, worker: Worker, _: int) -> None:
        if worker.pid in self._workers:
            self._forget(worker)

    def _forget(self, worker: Worker) -> None:
        del self._workers[worker.pid]
        self._selector.unregister(worker.handle)
        os.close(worker.handle)
        if worker.line is not None:
            self._hang_up(worker.line)


def _receive(end: socket.socket) -> tuple[bytes, list[int], bool]:
    """A packet, its descriptors, and whether this process had no place for some of them."""
    fds = array.array("i")
    data, extras, flags, _ = end.recvmsg(PART + 1, _SPACE, socket.MSG_CMSG_CLOEXEC)
    for level, kind, content in extras:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
    return data, list(fds), bool(flags & socket.MSG_CTRUNC)


def _do_nothing(number: int, frame: object) -> None:
    """Not SIG_IGN, which a command would inherit."""


def main() -> None:
    hiding.hide()
    fd, owner_pid = map(int, sys.argv[1:])
    with contextlib.suppress(PermissionError):
        os.setsid()  # A signal to the owner's whole group must not end the spawner, which has work to do then.
    os.closerange(3, fd)
    os.closerange(fd + 1, os.sysconf("SC_OPEN_MAX"))
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, _do_nothing if number in _UNHEEDED else signal.SIG_DFL)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    for number in (signal.SIGCHLD, signal.SIGCONT):
        signal.signal(number, _do_nothing)
    signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    prctl(_PR_SET_PDEATHSIG, int(signal.SIGCONT), 0, 0, 0)  # Even a stopped spawner notices the owner's end.
    end = socket.socket(fileno=fd)
    end.set_inheritable(False)
    Spawner(Line(end), owner_pid, ours, SystemClock()).run()


if __name__ == "__main__":
    main()
