"""The program of a spawner: a small process that starts, watches and ends other processes for its owner.

supervisor ──┬── spawner ──┬── command ── its descendants
             │             └── process for isolated jobs
             └── worker process

It runs no user code and has one thread, so it can always start processes, and it outlives its owner for a moment: when
the owner's end of its socket closes, it kills all processes and exits. Each worker process has a socket of its own.
When a worker process ends, the spawner kills the processes that this worker process has asked for, and the programs
that its jobs have started in its process group.

A spawner is also the dead man's switch of its supervisor. A worker process whose lease is not renewed exits by itself,
but not while a job holds the interpreter. Then the supervisor kills it, unless the supervisor hangs as well. So the
supervisor says until when each worker process may live, and the spawner kills those that live longer.

One packet is one message, or a part of a long one: a letter (`+` if more follows, `.` if not) and JSON. Descriptors
travel with the last part. The program is run by its path, with nothing but the standard library.
"""

from __future__ import annotations

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
from rota.executors.process import process_tree, protect_secrets
from rota.executors.process.started_processes import LOOK_S, Refused, Started, StartedProcesses

PART = 48 * 1024
MOST_FDS = 8
SOCKET_FD = 3
"""Where the spawner finds the socket of its owner."""
FULL_S = 0.02
"""How long the spawner waits before it writes again to a socket that had no space."""
LAST_S = 10.0
"""How long the spawner waits at its end for processes that the kernel cannot end yet."""
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGQUIT, signal.SIGTSTP)


class Client:
    """A process that asks the spawner to start others: the owner, or a worker process."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self.socket = end
        self.parts: list[bytes] = []
        self.answers: list[bytes] = []
        self.started: dict[int, Started] = {}
        """The processes of the client, by the ids that it has given them."""


class Worker:
    """A worker process, and until when it may live."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.handle = os.pidfd_open(pid)
        self.until = math.inf
        self.client: Client | None = None

    def kill(self) -> None:
        """Kills it if it is still alive, and its process group: the programs that its jobs have started."""
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self.handle, signal.SIGKILL)
            os.killpg(self.pid, signal.SIGKILL)  # No other process has the pid while this one is not reaped.
            return
        _kill_group_of_reaped(self.pid)


class Spawner:
    """Serves its owner and the owner's worker processes."""

    def __init__(self, owner: Client, owner_pid: int, wakeup: socket.socket, clock: Clock) -> None:
        self._owner = owner
        self._owner_pid = owner_pid
        self._wakeup = wakeup
        self._clock = clock
        self._started = StartedProcesses(clock.monotonic)
        self._workers: dict[int, Worker] = {}
        self._full: set[Client] = set()
        """The clients whose socket had no space for all answers."""
        self._selector = selectors.DefaultSelector()
        self._watch(wakeup, self._reap)
        self._watch(owner.socket, functools.partial(self._serve, owner))

    def run(self) -> None:
        """Until the owner closes its socket or dies.

        A process that the owner has forked may hold the socket open. Then the parent-death signal ends the `select`.
        """
        try:
            while os.getppid() == self._owner_pid:
                for key, events in self._selector.select(self._idle_s()):
                    key.data(events)
                self._act()
            self._serve(self._owner)  # The last messages may name worker processes whose programs must end too.
        except EOFError:
            pass
        self._end_all()

    def _watch(self, fd: int | socket.socket, act: Callable[[int], None]) -> None:
        self._selector.register(fd, selectors.EVENT_READ, act)

    def _idle_s(self) -> float | None:
        """How long the spawner may sleep unless a message comes or a process ends."""
        if self._full:
            return FULL_S
        due_at = min([self._started.due_at, *(worker.until for worker in self._workers.values())])
        return None if due_at == math.inf else max(0.0, due_at - self._clock.monotonic())

    def _act(self) -> None:
        now = self._clock.monotonic()
        full, self._full = self._full, set()
        for client in full:
            self._flush(client)
        self._started.act(now)
        if any(worker.until <= now for worker in self._workers.values()):
            self._serve(self._owner)  # If this process was stopped for a while, a longer lease may wait to be read.
            for worker in [worker for worker in self._workers.values() if worker.until <= now]:
                self._end(worker)

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

    def _serve(self, client: Client, _: int = 0) -> None:
        while client.socket.fileno() >= 0:
            try:
                data, fds, flags, _ = socket.recv_fds(client.socket, PART + 1, MOST_FDS)
            except BlockingIOError:
                return
            except OSError:
                data, fds, flags = b"", [], 0
            for fd in fds:
                os.set_inheritable(fd, False)
            if not data:
                self._disconnect(client)
                return
            client.parts.append(data[1:])
            if data[:1] != b"+":
                parts, client.parts = client.parts, []
                try:
                    self._handle(client, json.loads(b"".join(parts)), fds, bool(flags & socket.MSG_CTRUNC))
                except (ValueError, LookupError, TypeError, RecursionError):
                    # Not a valid request, so user code in the worker process must have written to the socket.
                    self._disconnect(client)
            for fd in fds:
                os.close(fd)

    def _disconnect(self, client: Client) -> None:
        """The client is gone: kills the processes that were started for it."""
        if client is self._owner:
            raise EOFError
        if client.socket.fileno() >= 0:
            self._selector.unregister(client.socket)
            client.socket.close()
            for started in list(client.started.values()):
                self._started.kill(started)

    def _handle(self, client: Client, message: dict[str, Any], fds: list[int], is_cut: bool) -> None:
        """`is_cut` says that this process was short of descriptors and could not take all of them."""
        match message["do"]:
            case "spawn":
                try:
                    if is_cut or len(fds) != message["fds"]:
                        raise Refused("descriptors", errno.EMFILE)
                    self._spawn(client, message, fds)
                except Refused as refused:
                    self._answer(client, {"id": message["id"], "step": refused.step, "code": refused.code})
            case "hold" if client is self._owner:
                self._hold(message["pid"], message["until"], fds)
            case "stop" if (started := client.started.get(message["id"])) is not None:  # It may have just ended.
                if message["grace_s"] > 0:
                    self._started.stop(started, message["grace_s"])
                else:
                    self._started.kill(started)
            case _:
                pass

    def _spawn(self, client: Client, message: dict[str, Any], fds: list[int]) -> None:
        id = message["id"]

        def report(account: dict[str, Any]) -> None:
            del client.started[id]
            self._answer(client, {"id": id, "ended": account})

        command = (message["argv"], message["env"], message["cwd"])
        started = client.started[id] = self._started.start(*command, fds, message["memory_bytes"], report)
        self._answer(client, {"id": id, "pid": started.pid})

    def _answer(self, client: Client, message: dict[str, Any]) -> None:
        client.answers.append(json.dumps(message).encode())
        if len(client.answers) == 1:
            self._flush(client)

    def _flush(self, client: Client) -> None:
        """Sends the answers. If the socket has no space for all of them, the rest is sent later."""
        while client.answers and client.socket.fileno() >= 0:
            try:
                client.socket.send(client.answers[0])
            except BlockingIOError:
                self._full.add(client)
                return
            except OSError:
                pass  # The client is gone, which `_serve` is about to read.
            del client.answers[0]

    # --- Worker processes -----------------------------------------------------------------------------

    def _hold(self, pid: int, until: float | None, fds: list[int]) -> None:
        """The worker process may live until then. The descriptor, if there is one, is its socket."""
        worker = self._workers.get(pid)
        if worker is None:
            try:
                worker = self._workers[pid] = Worker(pid)
            except ProcessLookupError:
                _kill_group_of_reaped(pid)
                return
            except OSError:
                return  # No descriptor is free. The message is repeated.
            self._watch(worker.handle, functools.partial(self._end, worker))
        worker.until = math.inf if until is None else until
        if fds:
            client = worker.client = Client(socket.socket(fileno=fds.pop()))
            self._watch(client.socket, functools.partial(self._serve, client))

    def _end(self, worker: Worker, _: int = 0) -> None:
        """The worker process has ended, or its lease has: kills what is left of its process group.

        A live supervisor does the same. If the supervisor is killed, the kernel kills the worker process when the main
        thread of the supervisor ends, and closes the supervisor's socket only when its last thread ends. So the end of
        the worker process may be all that this process has seen.
        """
        del self._workers[worker.pid]
        worker.kill()
        self._selector.unregister(worker.handle)
        os.close(worker.handle)
        if worker.client is not None:
            self._disconnect(worker.client)


def _kill_group_of_reaped(worker: int) -> None:
    """Kills the process group of a worker process that was reaped.

    The kernel reuses the pid only when the group is empty. So if a process has this pid, no process of the group is
    left.
    """
    if process_tree.read(worker) is None:
        with contextlib.suppress(OSError):
            os.killpg(worker, signal.SIGKILL)


def _do_nothing(number: int, frame: object) -> None:
    """Not SIG_IGN, which a command would inherit."""


def main() -> None:
    protect_secrets.hide()
    with contextlib.suppress(PermissionError):
        os.setsid()  # A signal to the owner's whole group must not end the spawner, which has work to do then.
    os.closerange(SOCKET_FD + 1, os.sysconf("SC_OPEN_MAX"))
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, _do_nothing if number in _IGNORED else signal.SIG_DFL)
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
    end = socket.socket(fileno=SOCKET_FD)
    end.set_inheritable(False)
    Spawner(Client(end), int(sys.argv[1]), ours, SystemClock()).run()
    signal.set_wakeup_fd(-1)  # `theirs` is closed now, and a signal may still arrive.


if __name__ == "__main__":
    main()
