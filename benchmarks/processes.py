"""Processes that a benchmark starts and ends, and what they cost."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.place import ROOT
from rota.executors.process.spawned import signal_name

STOP_S = 20.0
MOST_WORDS = 4_000
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PARENT, _RESIDENT_PAGES = 1, 21


class Tree:
    """A process that we started, and its children."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self.pid = process.pid
        self.log = log

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def last_words(self) -> str:
        """How the process ended, and the end of its log: a crash may have left nothing there."""
        code = self._process.wait()
        how = f"was killed by {signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
        return f"{how}; the end of its log: {self.log.read_text()[-MOST_WORDS:] or 'empty'}"

    def pids(self) -> list[int]:
        """The process first, then those below it."""
        return family(self.pid)

    def cpu_s(self) -> float:
        return cpu_s(self.pids())

    def rss_mb(self, word: str = "") -> list[float]:
        """Resident memory of each process, in the order of `pids`, in millions of bytes.

        With a word, of those that have it in their command line.
        """
        stats = [_stat(pid) for pid in self.pids() if word in _command_line(pid)]
        return [int(fields[_RESIDENT_PAGES]) * _PAGE / 1e6 for fields in stats if fields]

    def peak_mb(self) -> list[float]:
        """The most resident memory that each process has had, in the order of `pids`."""
        return [_peak_kb(pid) * 1024 / 1e6 for pid in self.pids()]

    def pss_mb(self) -> float:
        """Memory of all together, with pages that several share counted once."""
        return sum(_proportional_kb(pid) for pid in self.pids()) * 1024 / 1e6

    def stop(self) -> None:
        """Asks the process to end, and ends its whole group if it does not."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        # The group is ours alone: the process was started as the leader of a new session.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()


def family(pid: int) -> list[int]:
    """A process first, then those below it."""
    parents = {child: int(fields[_PARENT]) for child, fields in _all_stats()}
    found = [pid]
    for parent in found:
        found += [child for child, its_parent in parents.items() if its_parent == parent]
    return found


def cpu_s(pids: Iterable[int]) -> float:
    """Processor time used so far by the threads that live; finer than the ticks in `stat`."""
    return sum(_thread_ns(path) for pid in pids for path in _threads(pid)) / 1e9


@contextlib.contextmanager
def started(command: Sequence[str], environment: Mapping[str, str], log: Path) -> Iterator[Tree]:
    """Runs `command` from the repository's folder meanwhile."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | {"ROTA_DUMPABLE": "1"} | dict(environment),  # Otherwise only root can measure it.
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    tree = Tree(process, log)
    try:
        yield tree
        tree.stop()
    finally:
        tree.kill()


def _all_stats() -> Iterator[tuple[int, list[str]]]:
    for name in os.listdir("/proc"):
        if name.isdigit() and (fields := _stat(int(name))):
            yield int(name), fields


def _stat(pid: int) -> list[str]:
    """The fields of the process's stat line after its name; empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except OSError:
        return ""


def _proportional_kb(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def _peak_kb(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def _threads(pid: int) -> list[Path]:
    return list(Path(f"/proc/{pid}/task").glob("*/schedstat"))


def _thread_ns(path: Path) -> int:
    try:
        return int(path.read_text().split()[0])
    except OSError:
        return 0
