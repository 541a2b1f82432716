"""What commands can learn about the worker that runs them: not its environment, and not its memory."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.shell import QUICK
from tests.support.waiting import eventually

UNPRIVILEGED_UID = 65534
PASSWORD = "hunter2-of-the-database"
APP = """
from pathlib import Path
from rota import App

app = App("curious")


@app.job(isolation="process", every="1s")
def warm() -> None:
    Path("warm").touch()


app.command("look", ["sh", "look.sh"], every="1s", overlap="skip")
"""
LOOK = """
[ -e warm ] && mkdir looked || exit 0
for process in /proc/[0-9]*; do
    cat $process/environ && echo "$process/environ" >> looked/read
done > looked/environments 2> /dev/null
parent=$PPID
while [ "$parent" -gt 1 ]; do
    echo "$parent"
    parent=$(cut -d ' ' -f 4 /proc/$parent/stat)
done > looked/ancestors
for process in /proc/[0-9]*; do
    tr '\\0' ' ' < $process/cmdline && echo
done 2> /dev/null | grep 'rota[.]cli' > looked/arguments
mv looked done
"""


def as_another_user(command: list[str]) -> list[str]:
    """The command as an ordinary user. Root would be let into every process.

    It may open all files, because the interpreter and the folder of a test can be in places that are root's.
    """
    if os.geteuid() != 0:
        return command
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("root needs setpriv, of util-linux, to become another user")
    ids = [f"--reuid={UNPRIVILEGED_UID}", f"--regid={UNPRIVILEGED_UID}", "--clear-groups"]
    return [setpriv, *ids, "--inh-caps=+dac_override", "--ambient-caps=+dac_override", *command]


@contextmanager
def worker(folder: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ROTA_")}
    command = as_another_user([str(Path(sys.executable).with_name("rota")), "worker", "curious:app", *options])
    with (folder / "worker.log").open("wb") as log:
        environment = {**kept, **QUICK, "PGPASSWORD": PASSWORD}
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def test_a_command_finds_no_password_of_the_worker(tmp_path: Path) -> None:
    (tmp_path / "curious.py").write_text(APP)
    (tmp_path / "look.sh").write_text(LOOK)
    if os.geteuid() == 0:
        os.chown(tmp_path, UNPRIVILEGED_UID, UNPRIVILEGED_UID)
    url = f"sqlite:///{tmp_path}/{PASSWORD}.db"
    with worker(tmp_path, "--url", url) as supervisor:
        done = tmp_path / "done"
        eventually(done.exists)
        ancestors = (done / "ancestors").read_text().split()
        assert str(supervisor.pid) in ancestors
        assert (done / "read").exists(), "it can read what is its own"
        assert PASSWORD.encode() not in (done / "environments").read_bytes()
        arguments = (done / "arguments").read_text()
    assert "rota.cli.child_main" in arguments
    assert "rota.cli.job_process" in arguments
    assert PASSWORD not in arguments


# In a fork: the kernel counts the memory of the program before an exec, here that of pytest, to the peak.
METERED = """
import os
if os.fork():
    os.wait()
    os._exit(0)
from rota.executors.process.protect_secrets import hide
from rota.executors.process.meter import Meter
meter = Meter()
hide()
held = b"x" * 200_000_000
del held
meter.end()
meter.begin()
print(meter.end().peak_bytes, flush=True)
"""


def test_a_hidden_process_still_measures_one_job_after_the_other() -> None:
    assert int(output_of(METERED)) < 150_000_000


MARKED = """
import os, signal
from rota.executors.process import process_tree
from rota.executors.process.protect_secrets import hide
read, write = os.pipe()
if (spawner := os.fork()) == 0:
    process_tree.set_mark(process_tree.mark_for(os.getpid(), 1))
    if os.fork() == 0:
        hide()
        os.write(write, str(os.getpid()).encode())
        signal.pause()
    os._exit(0)
pid = int(os.read(read, 100))
os.waitpid(spawner, 0)
print(pid in [process.pid for process in process_tree.left_behind()])
os.kill(pid, signal.SIGKILL)
"""


def test_a_hidden_process_that_was_left_behind_is_found_by_its_mark() -> None:
    assert output_of(MARKED) == "True"


DUMPABLE = """
import ctypes, os
from rota.executors.process.protect_secrets import hide
for value in ("1", "0"):
    os.environ["ROTA_DUMPABLE"] = value
    hide()
    print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), end="")
"""


def test_a_process_can_be_left_dumpable_to_look_for_a_crash() -> None:
    assert output_of(DUMPABLE) == "10"


def output_of(program: str) -> str:
    command = as_another_user([sys.executable, "-c", program])
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
