"""Processes, seen and signalled without a chance of hitting a stranger: by file descriptor, never by a bare number."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable
from pathlib import Path

from rota.executors.process import spawner

PROC = Path("/proc")
POLL_S = 0.02
MARK = "LC_KILL_RUN"
"""The helper processes of a worker have a bare environment, in which nothing but such names is kept."""


class Process:
    """One process, pinned: its number may be used again, this object still means the old one."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._fd = os.pidfd_open(pid)

    def signal(self, number: signal.Signals) -> bool:
        """Whether it was still there to hear it."""
        if self.is_gone():
            return False
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._fd, number)
            return True
        return False

    def is_gone(self) -> bool:
        """Ended, whether or not its parent has taken notice."""
        if self._fd < 0:
            return True
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        return bool(poll.poll(0))

    def stands_still(self) -> bool:
        """Whether every thread of it has stopped, or all of it has ended: a signal takes a moment to be heard."""
        states = []
        with contextlib.suppress(OSError):
            for task in (PROC / f"{self.pid}/task").iterdir():
                states.append((task / "stat").read_text().rpartition(")")[2].split()[0])
        return self.is_gone() or (bool(states) and all(state in "TtZX" for state in states))

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def children_of(pid: int) -> list[int]:
    """Without spawners, which run no user code."""
    return [child for child in _all_children(pid) if not _is_spawner(child)]


def spawners_of(pid: int) -> list[int]:
    return [child for child in _all_children(pid) if _is_spawner(child)]


def _all_children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(text) for text in (PROC / f"{pid}/task/{pid}/children").read_text().split()]
    return []


def _is_spawner(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return spawner.PROGRAM.encode() in (PROC / f"{pid}/cmdline").read_bytes().split(b"\0")
    return False


def parent_of(pid: int) -> int | None:
    with contextlib.suppress(OSError):
        # The name in brackets may contain anything; what follows the last bracket is fixed.
        return int((PROC / f"{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return None


def marked(mark: str) -> list[int]:
    """Every living process whose environment carries the mark of this run, apart from this one."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in PROC.iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def described(pid: int) -> str:
    """What is known of a process, to find out why it still runs."""
    known = [str(pid)]
    with contextlib.suppress(OSError):
        words = (PROC / f"{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        status = (PROC / f"{pid}/status").read_text()
        wanted = ("State", "PPid", "NSsid", "SigPnd", "ShdPnd", "SigBlk")
        limits = (PROC / f"{pid}/limits").read_text()
        lines = [line for line in status.splitlines() if line.startswith(wanted)]
        lines += [line for line in limits.splitlines() if "realtime timeout" in line]
        known += [" ".join(line.split()) for line in lines]
        known.append(words.strip())
    return ", ".join(known)


def wait_until(condition: Callable[[], bool], timeout_s: float, what: str) -> None:
    """Other processes cannot call us back: look often, and give up with words."""
    give_up_at = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() >= give_up_at:
            raise TimeoutError(f"after {timeout_s:g} s still waiting for {what}")
        time.sleep(POLL_S)  # sleep: between two checks of other processes
