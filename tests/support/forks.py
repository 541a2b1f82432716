"""Runs `rota` commands as forks of a process that has imported everything already.

Each command is a process of its own, with its own folder, environment and streams. Only the start of the interpreter
and the imports are saved, which is most of the time of a command.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import rota
from rota.cli.main import main
from tests.support import ownership

REPOSITORY = Path(__file__).parents[2]
MOST_BYTES = 1_000_000
END_S = 10.0
_STREAMS = 3
_AT_START = ("PYTHON", "LC_", "LANG", "TZ", "LD_")
"""The beginnings of variables that an interpreter reads when it starts."""


def run(
    words: Sequence[str], folder: Path, env: Mapping[str, str], stdin: str, timeout_s: float
) -> tuple[int, str, str]:
    """The exit code, standard output and standard error of `rota` with these words."""
    if _at_start(env) != _at_start(os.environ):
        done = subprocess.run(
            [sys.executable, "-m", "rota", *words],
            cwd=folder,
            env=env,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr
    with contextlib.ExitStack() as closing:
        files = [closing.enter_context(os.fdopen(os.memfd_create(name), "w+b")) for name in ("in", "out", "err")]
        files[0].write(stdin.encode(errors="surrogateescape"))
        files[0].seek(0)
        request = json.dumps({"words": list(words), "folder": str(folder), "env": dict(env)}).encode()
        code = _server().ask(request, [file.fileno() for file in files], timeout_s)
        out, err = (_text(file.fileno()) for file in files[1:])
        return code, out, err


def _at_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(_AT_START)}


def _text(descriptor: int) -> str:
    size = os.fstat(descriptor).st_size
    return os.pread(descriptor, size, 0).decode().replace("\r\n", "\n")


class _Server:
    """The process that forks. It ends when this one closes its socket."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, ownership.shared():
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.forks", str(theirs.fileno())],
                cwd=REPOSITORY,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        self._ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MOST_BYTES)
        atexit.register(self.close)

    def close(self) -> None:
        self._ours.close()
        self._process.wait(END_S)

    def ask(self, request: bytes, descriptors: list[int], timeout_s: float) -> int:
        socket.send_fds(self._ours, [request], descriptors)
        self._ours.settimeout(timeout_s)
        pid = int(self._received())
        try:
            return int(self._received())
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            self._ours.settimeout(None)
            self._received()
            raise

    def _received(self) -> bytes:
        answer = self._ours.recv(100)
        assert answer, "the process that forks has ended"
        return answer


@functools.cache
def _server() -> _Server:
    return _Server()


# --- In the process that forks --------------------------------------------------------------------


def serve(place: socket.socket) -> None:
    """Returns in each fork, which then runs its command; the server itself exits."""
    for module in pkgutil.walk_packages(rota.__path__, "rota."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    gc.freeze()  # Otherwise each fork would copy the pages of all objects at its first collection.
    while True:
        request, descriptors, _, _ = socket.recv_fds(place, MOST_BYTES, _STREAMS)
        if not request:
            os._exit(0)
        pid = os.fork()
        if pid == 0:
            _become(json.loads(request), descriptors)
            return
        for descriptor in descriptors:
            os.close(descriptor)
        place.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        place.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(request: dict[str, Any], descriptors: Sequence[int]) -> None:
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.path[0] = request["folder"]
    sys.argv = ["rota", *request["words"]]


def _exit_after(command: Callable[[], None]) -> NoReturn:
    """Exits as an interpreter does, but leaves the memory to the kernel: to tidy it up would copy all pages first."""
    code = 0
    try:
        command()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        serve(connection)
    _exit_after(main)  # In the fork.
