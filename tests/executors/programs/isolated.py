"""An app for the pool of processes: its jobs wait for files, crash, speak, and leave things behind."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

from rota import App, Context

app = App("isolated")
_left: list[threading.Event] = []


@app.job(isolation="process")
def pid() -> int:
    return os.getpid()


@app.job(isolation="process")
def wait_for(began: str, gate: str) -> int:
    Path(began).write_text(str(os.getpid()))
    while not Path(gate).exists():
        time.sleep(0.01)  # sleep: a gate is a file, which calls nobody back.
    return os.getpid()


@app.job(isolation="process")
def crash(began: str, gate: str) -> None:
    wait_for(began, gate)
    os._exit(3)


@app.job(isolation="process")
def leave_thread() -> int:
    _left.append(threading.Event())
    threading.Thread(target=_left[-1].wait, daemon=True).start()
    return os.getpid()


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
