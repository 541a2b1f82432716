"""Rota inside a script: define jobs, enqueue them, run a worker beside the script, and take the results.

    python -m examples.embedded

The script and its worker are two processes that meet in the database. In production the worker is started by the
service manager, not by the script; everything else stays the same. A web process is the second half: it only
enqueues and reads, with the methods that start with `a`, and never blocks its event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Iterator

from rota import App, ExecutionFailed

app = App("embedded")  # ROTA_URL, or else rota.db in the current folder.


@app.job
def word_count(text: str) -> int:
    return len(text.split())


@app.job(retry=None)
async def divide(a: float, b: float) -> float:
    await asyncio.sleep(0)
    return a / b


@contextlib.contextmanager
def worker() -> Iterator[None]:
    """A worker of this app, as long as the block lasts. At the end it finishes what it runs."""
    process = subprocess.Popen([sys.executable, "-m", "rota", "worker", "examples.embedded:app"])
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def in_a_script() -> None:
    one = word_count.enqueue("durable before this call returns")
    print("accepted", one.id)
    print("words:", one.result(timeout=30))

    many = word_count.enqueue_many(["one", "one two", "one two three"])
    print("words:", [x.result(timeout=30) for x in many])

    try:
        divide.enqueue(1, 0).result(timeout=30)
    except ExecutionFailed as error:
        print("failed:", error)


async def in_a_web_process() -> None:
    """What a request handler does: accept, answer with the id, and look again when asked."""
    accepted = await divide.aenqueue(1, 8)
    print("202 Accepted", accepted.id)

    later = app.handle(accepted.id)
    print("200 OK", await later.aresult(timeout=30))


def main() -> None:
    with worker():
        in_a_script()
        asyncio.run(in_a_web_process())


if __name__ == "__main__":
    main()
