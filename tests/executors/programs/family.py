"""A command that starts others which outlive it: `family.py FILE stay|leave`. Writes all process numbers to FILE.

Its own comes first, then that of each kind of descendant.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

KINDS = ("child", "session", "daemon", "wiped")


def start(kind: str, report: int) -> None:
    if os.fork():
        return
    if kind != "child":
        os.setsid()
    if kind in ("daemon", "wiped") and os.fork():
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if kind == "wiped":  # Neither parent nor session nor environment shows where it comes from.
        os.write(report, f"{KINDS.index(kind)} {os.getpid()}\n".encode())
        os.execve("/bin/sleep", ["sleep", "1000"], {})
    os.write(report, f"{KINDS.index(kind)} {os.getpid()}\n".encode())
    while True:
        signal.pause()


def main() -> None:
    file, then = Path(sys.argv[1]), sys.argv[2]
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    read, write = os.pipe()
    for kind in KINDS:
        start(kind, write)
    with os.fdopen(read) as lines:
        pids = [line.split()[1] for line in sorted(lines.readline() for _ in KINDS)]
    written = file.with_suffix(".new")
    written.write_text("\n".join([str(os.getpid()), *pids]))
    written.rename(file)
    while then == "stay":
        signal.pause()


main()
