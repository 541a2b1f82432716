"""The commands of the trials: programs that write much output, ignore signals, or leave orphans."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.kill.effects import Effect, send
from tests.kill.jobs import CHARGE

MEGABYTE = 1_000_000
LEFT = "left"
"""The file that names the process which a command has left behind."""


def main(_ticket: str, what: str, *words: str) -> None:
    tell("start")
    match what:
        case "shout":
            line = b"x" * 99 + b"\n"
            for _ in range(int(words[0])):
                sys.stdout.buffer.write(line * (MEGABYTE // len(line)))
        case "ignore":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            Path(LEFT).write_text(str(os.getpid()))
            while True:
                signal.pause()
        case "leave":
            left = subprocess.Popen(["sleep", "600"], start_new_session=True, stdout=subprocess.DEVNULL)
            Path(LEFT).write_text(str(left.pid))
        case "remain":
            remaining = subprocess.Popen(["sleep", "600"], start_new_session=True, stdout=subprocess.DEVNULL, env={})
            if os.environ["ROTA_FENCE"] == "1":
                Path(LEFT).write_text(str(remaining.pid))
                while True:
                    signal.pause()
        case _:
            pass
    tell(CHARGE)
    print(f"\n{os.environ['ROTA_FENCE']}")


def tell(kind: str) -> None:
    """The worker process that holds the attempt is not known here."""
    fence = int(os.environ["ROTA_FENCE"])
    send(Effect(os.environ["ROTA_EXECUTION_ID"], fence, kind, fenced=kind == CHARGE, pid=0))


if __name__ == "__main__":
    main(*sys.argv[1:])
