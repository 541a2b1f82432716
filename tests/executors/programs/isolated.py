"""An app for the pool of processes: its jobs wait for files, crash, write output, and leave orphans."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from rota import App, Context

app = App("isolated")
LARGE = 200


@app.job(isolation="process")
def pid() -> int:
    return os.getpid()


@app.job(isolation="process")
def wait_for(began: str, gate: str) -> int:
    Path(began).write_text(str(os.getpid()))
    while not Path(gate).exists():
        time.sleep(0.01)  # sleep: a gate is a file, which sends no signal.
    return os.getpid()


@app.job(isolation="process")
def crash(began: str, gate: str) -> None:
    wait_for(began, gate)
    os._exit(3)


@app.job(isolation="process")
def leave(how: str, written: str) -> int:
    """What it leaves says where it is: a child, or one that has lost its parent and is in a session of its own."""
    script = f'echo $$ > "{written}.new"; mv "{written}.new" "{written}"; exec sleep 600'
    if how == "orphan":
        subprocess.run(["sh", "-c", 'setsid sh -c "$1" &', "sh", script], check=True)
    else:
        subprocess.Popen(["sh", "-c", script])
    while not Path(written).exists():
        time.sleep(0.01)  # sleep: a file sends no signal.
    return os.getpid()


@app.job(isolation="process")
def burn(seconds: float) -> int:
    """Holds much memory, for long enough to be measured."""
    kept, until = bytearray(b"x") * (LARGE * 2**20), time.process_time() + seconds
    while time.process_time() < until:
        pass
    del kept
    return os.getpid()


@app.job(isolation="process")
def burn_in_child(seconds: float) -> int:
    subprocess.run([sys.executable, "-c", f"from {__name__} import burn; burn({seconds})"], check=True)
    return os.getpid()


@app.job(isolation="process")
def burn_and_crash(seconds: float) -> None:
    kept, until = bytearray(b"x") * (LARGE * 2**20), time.process_time() + seconds
    while time.process_time() < until:
        pass
    os._exit(len(kept) % 2)


@app.job(isolation="process")
def end_spawner(began: str, gate: str) -> None:
    wait_for(began, gate)
    os.kill(os.getppid(), 9)
    time.sleep(600)  # sleep: it ends with the spawner.


@app.job(isolation="process")
def hold(megabytes: int) -> None:
    bytearray(b"x") * (megabytes * 2**20)


@app.job(isolation="process")
def speak(ctx: Context, count: int) -> None:
    for number in range(count):
        print("printed", number)
        ctx.log(f"told {number}")
    os.write(2, b"past Python\n")
    print("without an end", end="")


@app.job(isolation="process")
def crash_after(words: str) -> None:
    print(words)
    print("oh", words, file=sys.stderr)
    os._exit(3)
