"""The stage: a small process beside a worker that starts the worker's commands, watches them and ends them.

It runs no code of users and has one thread, so starting a process from it is safe, and it lives on for a moment when
the worker dies: then it ends everything that it started. It is run by its path, without the package.

One packet is one message, or a part of a long one: a letter (`+` if more follows, `.` if not) and JSON. Descriptors
travel with the last part: standard output, standard error, and those that the command finds as 3, 4 and so on.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import errno
import functools
import json
import os
import select
import selectors
import signal
import socket
import struct
import sys
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING or __name__ != "__main__":
    from rota.executors import launch, tree
else:
    # Last, so that no neighbour takes the place of a module of the standard library.
    sys.path.append(os.path.dirname(__file__))  # noqa: PTH120
    import launch
    import tree

PART = 48 * 1024
MOST_FDS = 250
_ROOM = socket.CMSG_SPACE(MOST_FDS * array.array("i").itemsize)
MOST_PATIENCE_S = 0.005
"""How long the stage waits for a program to begin, if it has no other."""
TICK_S = 0.05
LIMITED_TICKS, ALL_TICKS = 2, 5
"""After how many ticks the memory of commands is looked at: of those that have a limit, and of all."""
LAST_TICKS = 200
"""How long the stage waits, when the worker is gone, for processes that the kernel cannot end yet."""

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_CLOCK_MONOTONIC, _TFD_NONBLOCK, _TFD_CLOEXEC = 1, 0o4000, 0o2000000
_libc = ctypes.CDLL(None, use_errno=True)
_UNHEEDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGQUIT, signal.SIGTSTP)


class Command:
    """One command and what is known of its tree."""

    def __init__(self, id: int, process: tree.Process, report: int, mark: int, memory_bytes: int | None) -> None:
        self.id = id
        self.report = report
        """Tells whether its program runs; negative once that is known."""
        self.process = process
        self.mark = mark
        self.memory_bytes = memory_bytes
        self.known: dict[int, tree.Process] = {process.pid: process}
        self.status: int | None = None
        self.is_refused = False
        self.kill_at: int | None = None
        self.cpu_s = 0.0
        self.peak_bytes = 0
        self.past_bytes = 0
        """A peak of before, which the kernel goes on to tell of it."""
        self.is_out_of_memory = False

    def knows(self, process: tree.Process) -> bool:
        """Whether it was seen in this command's tree before."""
        known = self.known.get(process.pid)
        return known is not None and known.start == process.start

    def owns(self, process: tree.Process, mark: int) -> bool:
        return process.session == self.process.pid or mark == self.mark

    def could_own(self, process: tree.Process) -> bool:
        return self.process.start <= process.start


class Ticker:
    """Counts the time while there is something to count it for; the kernel keeps it."""

    def __init__(self) -> None:
        self.fd = _libc.timerfd_create(_CLOCK_MONOTONIC, _TFD_NONBLOCK | _TFD_CLOEXEC)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self.now = 0

    def run(self, is_on: bool) -> None:
        pace = round(TICK_S * 1e9) if is_on else 0
        _libc.timerfd_settime(self.fd, 0, struct.pack("llll", 0, pace, 0, pace), None)

    def read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self.now += int(struct.unpack("Q", os.read(self.fd, 8))[0])


class Stage:
    """All commands of one worker."""

    def __init__(self, line: socket.socket, wakeup: socket.socket) -> None:
        self._line = line
        self._wakeup = wakeup
        self._pid = os.getpid()
        self._ticker = Ticker()
        self._commands: dict[int, Command] = {}
        self._by_pid: dict[int, Command] = {}
        self._parts: list[bytes] = []
        self._answers: list[bytes] = []
        self._is_full = False
        self._is_childless = True
        self._selector = selectors.DefaultSelector()
        self._selector.register(line, selectors.EVENT_READ, self._listen)
        self._selector.register(wakeup, selectors.EVENT_READ, self._reap)
        self._selector.register(self._ticker.fd, selectors.EVENT_READ, self._tick)

    def run(self, worker: int) -> None:
        """Until the worker closes its end, or is gone while a process that it forked still holds that end."""
        with contextlib.suppress(ProcessLookupError, OSError):
            handle = os.pidfd_open(worker)
            self._selector.register(handle, selectors.EVENT_READ, self._leave)
        try:
            while os.getppid() == worker:
                for key, events in self._selector.select():
                    if events & selectors.EVENT_WRITE:
                        self._flush()
                    if events & selectors.EVENT_READ:
                        key.data()
        except (EOFError, ConnectionError):
            pass
        self._end_all()

    def _leave(self) -> NoReturn:
        raise EOFError

    def _end_all(self) -> None:
        waiting = selectors.DefaultSelector()
        waiting.register(self._wakeup, selectors.EVENT_READ)
        waiting.register(self._ticker.fd, selectors.EVENT_READ)
        self._ticker.run(True)
        give_up_at = self._ticker.now + LAST_TICKS
        while tree.children(self._pid) and self._ticker.now < give_up_at:
            tree.kill(lambda: tree.descendants(self._pid))
            waiting.select()
            self._ticker.read()
            self._collect()

    # --- The line to the worker -------------------------------------------------------------------

    def _listen(self) -> None:
        while True:
            try:
                data, fds, is_cut = _receive(self._line)
            except BlockingIOError:
                return
            if not data:
                raise EOFError
            self._parts.append(data[1:])
            if data[:1] == b"+":
                continue
            message = json.loads(b"".join(self._parts))
            self._parts.clear()
            try:
                self._obey(message, fds, is_cut)
            finally:
                for fd in fds:
                    os.close(fd)

    def _obey(self, message: dict[str, Any], fds: list[int], is_cut: bool) -> None:
        id = message["id"]
        if message["do"] == "spawn":
            try:
                if is_cut or len(fds) != message["fds"]:
                    raise launch.Refusal("descriptors", errno.EMFILE)
                self._spawn(message, fds)
            except launch.Refusal as refusal:
                self._refuse(id, refusal)
            return
        command = self._commands.get(id)
        if command is None:
            return  # It has just ended, and the worker does not know yet.
        if message["do"] == "begin_anew":
            command.peak_bytes, command.past_bytes = 0, message["children_bytes"]
        elif message["do"] == "stop" and message["grace_s"] > 0:
            tree.send_all(self._members(command), signal.SIGTERM)
            kill_at = self._ticker.now + 1 + round(message["grace_s"] / TICK_S)
            command.kill_at = kill_at if command.kill_at is None else min(kill_at, command.kill_at)
        else:
            self._kill(command)

    def _say(self, message: dict[str, Any]) -> None:
        self._answers.append(json.dumps(message).encode())
        if len(self._answers) == 1:
            self._flush()

    def _refuse(self, id: int, refusal: launch.Refusal) -> None:
        self._say({"say": "refused", "id": id, "step": refusal.step, "code": refusal.code})

    def _flush(self) -> None:
        is_full = False
        while self._answers and not is_full:
            try:
                self._line.send(self._answers[0])
                del self._answers[0]
            except BlockingIOError:
                is_full = True
        if is_full != self._is_full:
            self._is_full = is_full
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if is_full else 0)
            self._selector.modify(self._line, events, self._listen)

    # --- Commands ---------------------------------------------------------------------------------

    def _spawn(self, message: dict[str, Any], fds: list[int]) -> None:
        mark = tree.mark_for(self._pid, message["id"])
        pid, report = launch.begin(message["argv"], message["env"], message["cwd"], fds, mark)
        self._is_childless = False
        if not self._commands:
            # What this process touches while its copy is there has to be copied too. Others go on meanwhile, if any.
            select.select([report], [], [], MOST_PATIENCE_S)
            self._ticker.run(True)
        process = tree.read(pid) or tree.Process(pid, self._pid, pid, 0, "R")
        command = Command(message["id"], process, report, mark, message["memory_bytes"])
        self._commands[command.id] = self._by_pid[pid] = command
        self._selector.register(report, selectors.EVENT_READ, functools.partial(self._learn, command))
        self._learn(command)

    def _learn(self, command: Command) -> None:
        """Tells the worker whether the program runs, as soon as that is known."""
        if command.report < 0:
            return
        try:
            if not launch.is_running(command.report):
                return
            self._say({"say": "spawned", "id": command.id, "pid": command.process.pid})
        except launch.Refusal as refusal:
            command.is_refused = True
            self._refuse(command.id, refusal)
        self._selector.unregister(command.report)
        os.close(command.report)
        command.report = -1

    def _orphans(self) -> list[tree.Process]:
        """Processes of commands that have lost the parent that started them; the kernel gives them to the stage."""
        if self._is_childless:
            return []
        found = (tree.read(pid) for pid in tree.children(self._pid) if pid not in self._by_pid)
        return [process for process in found if process is not None]

    def _orphans_of(self, command: Command, orphans: list[tree.Process]) -> list[tree.Process]:
        return [process for process in orphans if self._owner(process) is command]

    def _owner(self, process: tree.Process) -> Command | None:
        for command in self._commands.values():
            if command.knows(process):
                return command
        mark = tree.mark(process.pid)
        for command in self._commands.values():
            if command.owns(process, mark):
                command.known[process.pid] = process
                return command
        if self._is_ours(mark):
            return None  # Its command has ended.
        # Without a mark and in a session of its own: the last command that it may be of has it.
        possible = [command for command in self._commands.values() if command.could_own(process)]
        return possible[0] if len(possible) == 1 else None

    def _is_ours(self, mark: int) -> bool:
        return tree.mark_for(self._pid, 0) <= mark < tree.mark_for(self._pid + 1, 0)

    def _is_stray(self, process: tree.Process) -> bool:
        """Whether its command has ended: such a one escaped a look while its parents came and went."""
        if self._owner(process) is not None:
            return False
        may_have_one = any(command.could_own(process) for command in self._commands.values())
        return not may_have_one or self._is_ours(tree.mark(process.pid))

    def _end_strays(self, orphans: list[tree.Process]) -> None:
        strays = [process for process in orphans if self._is_stray(process)]
        if strays:
            tree.kill(lambda: [*strays, *tree.below([stray.pid for stray in strays], tree.everyone())])

    def _roots(self, command: Command, orphans: list[tree.Process]) -> list[tree.Process]:
        main = [command.process] if command.status is None else []
        return main + self._orphans_of(command, orphans)

    def _members(self, command: Command) -> list[tree.Process]:
        """The whole tree, by a look at all processes."""
        among = tree.everyone()
        roots = self._roots(command, self._orphans())
        found = {process.pid: process for process in (*roots, *tree.below([root.pid for root in roots], among))}
        command.known |= found
        return list(found.values())

    def _kill(self, command: Command) -> None:
        command.kill_at = self._ticker.now
        tree.kill(lambda: self._members(command))

    def _reap(self) -> None:
        self._collect()
        ended = [command for command in self._commands.values() if command.status is not None]
        orphans = self._orphans() if ended else []
        for command in ended:
            self._settle(command, orphans)

    def _collect(self) -> None:
        """Takes in what has ended, and adds what it cost to its command."""
        with contextlib.suppress(BlockingIOError):
            while self._wakeup.recv(4096):
                pass
        try:
            while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                pid = ended.si_pid
                command = self._by_pid.pop(pid, None)
                is_main = command is not None
                if command is None and (process := tree.read(pid)) is not None:
                    command = self._owner(process)
                _, status, usage = os.wait4(pid, 0)
                if command is not None:
                    command.cpu_s += usage.ru_utime + usage.ru_stime
                    if not is_main or usage.ru_maxrss * 1024 > command.past_bytes:
                        command.peak_bytes = max(command.peak_bytes, usage.ru_maxrss * 1024)
                    if is_main:
                        command.status = status
        except ChildProcessError:
            self._is_childless = True  # What a command has left behind would be a child by now.

    def _settle(self, command: Command, orphans: list[tree.Process]) -> None:
        """Says that a command has ended, if nothing is left of it; ends the rest, once it has had its time."""
        self._learn(command)
        if self._orphans_of(command, orphans):
            if command.kill_at is None or command.kill_at <= self._ticker.now:
                self._kill(command)
            return
        del self._commands[command.id]
        if not self._commands:
            self._ticker.run(False)
            self._end_strays(orphans)
        if command.is_refused:
            return
        code = os.waitstatus_to_exitcode(command.status or 0)
        self._say(
            {
                "say": "ended",
                "id": command.id,
                "exit_code": code if code >= 0 else None,
                "signal": -code if code < 0 else None,
                "cpu_s": command.cpu_s,
                "peak_bytes": command.peak_bytes,
                "out_of_memory": command.is_out_of_memory,
            }
        )

    # --- Time -------------------------------------------------------------------------------------

    def _tick(self) -> None:
        before = self._ticker.now
        self._ticker.read()
        now = self._ticker.now
        looks_at_all = before // ALL_TICKS != now // ALL_TICKS
        looks_at_limited = before // LIMITED_TICKS != now // LIMITED_TICKS
        has_ended = any(command.status is not None for command in self._commands.values())
        orphans = self._orphans() if looks_at_all or looks_at_limited or has_ended else []
        for command in list(self._commands.values()):
            if looks_at_all or (looks_at_limited and command.memory_bytes is not None):
                self._measure(command, orphans)
            if command.status is not None:
                self._settle(command, orphans)
            elif command.kill_at is not None and command.kill_at <= now:
                self._kill(command)
        if looks_at_all:
            self._end_strays(orphans)

    def _measure(self, command: Command, orphans: list[tree.Process]) -> None:
        members = tree.walk(self._roots(command, orphans))
        command.known = members
        held = tree.resident_bytes(members.values())
        command.peak_bytes = max(command.peak_bytes, held)
        if command.memory_bytes is not None and held > command.memory_bytes and not command.is_out_of_memory:
            command.is_out_of_memory = True
            self._kill(command)


def _receive(line: socket.socket) -> tuple[bytes, list[int], bool]:
    """A packet, its descriptors, and whether some of them found no place in this process."""
    fds = array.array("i")
    data, extras, flags, _ = line.recvmsg(PART + 1, _ROOM, socket.MSG_CMSG_CLOEXEC)
    for level, kind, content in extras:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
    return data, list(fds), bool(flags & socket.MSG_CTRUNC)


def _do_nothing(number: int, frame: object) -> None:
    """Not SIG_IGN, which a command would inherit."""


def main() -> None:
    fd = int(sys.argv[1])
    with contextlib.suppress(PermissionError):
        os.setsid()  # What ends the worker's whole group must not end the stage, which has work to do then.
    os.closerange(3, fd)
    os.closerange(fd + 1, os.sysconf("SC_OPEN_MAX"))
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, _do_nothing if number in _UNHEEDED else signal.SIG_DFL)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    signal.signal(signal.SIGCHLD, _do_nothing)
    signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGCONT), 0, 0, 0)  # Even if a command has stopped us, we see our end.
    line = socket.socket(fileno=fd)
    line.setblocking(False)
    line.set_inheritable(False)
    worker, _, _ = struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    Stage(line, ours).run(worker)


if __name__ == "__main__":
    main()
