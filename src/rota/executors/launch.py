"""Starting programs: what happens between fork and exec, and how it is told that it went wrong.

A forked interpreter pays for every page that it touches, so whatever can be prepared is prepared before.

Used by the stage, by its path: nothing but the standard library here.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import signal
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING or __package__:
    from rota.executors import tree
else:
    import tree

MOST_WORD = 100
_PR_SET_PDEATHSIG = 1
_SIGKILL = int(signal.SIGKILL)
_prctl = ctypes.CDLL(None).prctl


class Refusal(Exception):
    """A command that was not started: what went wrong (a step and an errno)."""

    def __init__(self, step: str, code: int) -> None:
        super().__init__(os.strerror(code))
        self.step = step
        self.code = code


def begin(argv: list[str], env: dict[str, str], cwd: str | None, fds: list[int], mark: int) -> tuple[int, int]:
    """Starts a program in a session of its own; the kernel kills it if the process that started it dies.

    It and all that it starts inherit the mark.

    It reads from what the stage reads from, which is nothing, and finds `fds` as 1, 2 and so on. Returns its process,
    and a descriptor for `is_running`, which can be read as soon as the program runs, or is known not to.
    """
    stage, paths = os.getpid(), _paths(argv[0], env)
    try:
        read, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise Refusal("descriptors", error.errno or 0) from None
    try:
        pid = os.fork()
        if pid == 0:
            _become(stage, paths, argv, env, cwd, fds, write, mark)
    except OSError as error:
        os.close(read)
        raise Refusal("fork", error.errno or 0) from None
    finally:
        os.close(write)
    return pid, read


def is_running(report: int) -> bool:
    """False if nothing is known yet; raises Refusal if the program will never run, and its process is about to end."""
    try:
        word = os.read(report, MOST_WORD).decode()
    except BlockingIOError:
        return False
    if word:
        step, _, code = word.partition(" ")
        raise Refusal(step, int(code))
    return True


def _paths(program: str, env: dict[str, str]) -> list[str]:
    """Where the program may be."""
    if "/" in program:
        return [program]
    return [os.path.join(folder, program) for folder in env.get("PATH", os.defpath).split(":")]  # noqa: PTH118


def _become(
    stage: int,
    paths: list[str],
    argv: list[str],
    env: dict[str, str],
    cwd: str | None,
    fds: list[int],
    report: int,
    mark: int,
) -> NoReturn:
    """In the new process: becomes the program, or reports why it cannot. Handlers of signals end with the exec."""
    step = "fork"
    try:
        os.setsid()
        _prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
        if os.getppid() != stage:
            os._exit(1)
        env = tree.put_on(mark, env)
        step = "descriptors"
        # First all out of the way, then each to its place.
        places = len(fds) + 1
        report = _above(report, places)
        for place, source in enumerate([_above(fd, places) for fd in fds], 1):
            os.dup2(source, place)
        if cwd is not None:
            step = "directory"
            os.chdir(cwd)
        step = "program"
        _execute(paths, argv, env)
    except OSError as error:
        os.write(report, f"{step} {error.errno or 0}".encode())
    except BaseException:
        os.write(report, f"{step} {errno.EINVAL}".encode())
    finally:
        os._exit(127)


def _above(fd: int, places: int) -> int:
    """The descriptor, or a copy if it stands where one of the command's own is going to."""
    return fd if fd >= places else fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, places)


def _execute(paths: list[str], argv: list[str], env: dict[str, str]) -> NoReturn:
    """The first that can be executed; if none can, the first reason that is not its absence is raised."""
    reason: OSError | None = None
    for path in paths:
        try:
            os.execve(path, argv, env)
        except OSError as error:
            if reason is None or reason.errno in (errno.ENOENT, errno.ENOTDIR):
                reason = error
    raise reason or FileNotFoundError(errno.ENOENT, "")
