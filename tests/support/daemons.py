"""What it takes to own a real server for the length of a test run: an account, a folder, a port, and its end."""

from __future__ import annotations

import atexit
import os
import pwd
import random
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.support import ownership

LOCALHOST = "127.0.0.1"

# Below the range that Linux gives to outgoing connections (32768 and up): a port must still be free when its server
# comes back after a restart.
_PORTS = range(15_000, 32_000)

# Runs until its input ends, which it does when the test run closes it or dies, however it dies. Whatever works in the
# folder is then asked to go (a server that may tidy up leaves no shared memory behind) and, if need be, killed.
_GUARD = """
cat >/dev/null
at_work() { find /proc/[0-9]*/cwd -maxdepth 0 \\( -lname "$1" -o -lname "$1/*" \\) 2>/dev/null | cut -d / -f 3; }
tries=0
signal=QUIT
while pids=$(at_work "$1") && [ -n "$pids" ]; do
    [ $tries -eq 0 ] || [ $tries -ge 50 ] && kill -s $signal $pids 2>/dev/null
    tries=$((tries + 1))
    [ $tries -ge 50 ] && signal=KILL
    [ $tries -ge 100 ] && break
    sleep 0.1
done
rm -rf "$1"
"""


class Account(NamedTuple):
    """Whom a server runs as, in the words of `subprocess`, where `None` means: as ourselves."""

    user: int | None = None
    group: int | None = None
    groups: Sequence[int] | None = None


def account() -> Account:
    """`nobody` if we are root, because servers refuse to run as root; otherwise ourselves."""
    if os.getuid() != 0:
        return Account()
    entry = pwd.getpwnam("nobody")
    return Account(entry.pw_uid, entry.pw_gid, [])


def run(command: Sequence[str | Path], folder: Path, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
    """Runs a command as the servers' account; the output is returned together with the exit code.

    The output goes to a file: a daemon that the command leaves behind would keep a pipe open forever.
    """
    servant = account()
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        done = subprocess.run(
            [str(word) for word in command],
            cwd=folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=timeout_s,
            check=False,
            user=servant.user,
            group=servant.group,
            extra_groups=servant.groups,
        )
        output.seek(0)
        return subprocess.CompletedProcess(done.args, done.returncode, output.read(), "")


def environment() -> Mapping[str, str]:
    """Nothing that a developer has set (PGHOST, LC_ALL, TZ …) changes what a test sees."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}


def free_port() -> int:
    """A port that is free now. Another program may take it first, so the first start tries more than one."""
    chance = random.SystemRandom()
    while True:
        port = chance.choice(_PORTS)
        with socket.socket() as probe:
            try:
                probe.bind((LOCALHOST, port))
            except OSError:
                continue
            return port


class OwnedFolder:
    """A temporary folder that goes away with everything that works in it, even when the test run is killed."""

    def __init__(self, name: str) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=f"rota-{name}-", dir=_temporary_folder())).resolve()
        self.path.chmod(0o755)
        self._owner = os.getpid()
        # In a session of its own, so that a Ctrl-C for the tests does not end it before its work.
        with ownership.shared():
            self._guard = subprocess.Popen(
                ["sh", "-c", _GUARD, "guard", str(self.path)],
                stdin=subprocess.PIPE,
                cwd="/",
                env=environment(),
                start_new_session=True,
            )
        atexit.register(self.close)

    def make(self, name: str) -> Path:
        """A folder inside that belongs to the servers' account alone."""
        path = self.path / name
        path.mkdir(mode=0o700)
        self.give(path)
        return path

    def give(self, path: Path) -> None:
        servant = account()
        if servant.user is not None and servant.group is not None:
            os.chown(path, servant.user, servant.group)

    def close(self) -> None:
        if os.getpid() != self._owner:
            return  # A fork has inherited the object, but not the folder.
        atexit.unregister(self.close)
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        self._guard.wait(timeout=60)
        shutil.rmtree(self.path, ignore_errors=True)


def _temporary_folder() -> Path:
    """A folder for temporary files that the servers' account can reach.

    A long one will not do: the path of a Unix socket has hardly more than a hundred characters.
    """
    candidates = [Path(name).resolve() for name in (tempfile.gettempdir(), "/tmp", "/var/tmp")]
    for path in candidates:
        if len(str(path)) <= 60 and is_reachable(path):
            return path
    raise RuntimeError(f"servers for tests need a temporary folder that others may enter, none of {candidates} is one")


def is_reachable(path: Path) -> bool:
    """Whether the servers' account may enter this folder and all above it."""
    return account().user is None or all(folder.stat().st_mode & 0o001 for folder in [path, *path.parents])
