"""The command of the chaos run, without the package and its imports: `program.py MODE TICKET BODY_S`.

It starts a process in a session of its own that means to stay for a minute, makes its effects, and prints its fence.
Everything that it started must be gone soon after it, however it ends.
"""

import json
import os
import signal
import socket
import sys
import time

STAYS_S = 60
NOISE_LINES, NOISE = 3_000, "noise " * 700
PATIENCE_S = 120


def main(mode: str, body_s: float) -> None:
    daemon()
    send("start")
    if mode == "long":
        signal.signal(signal.SIGTERM, told)
    if mode == "noise":
        for _ in range(NOISE_LINES):
            print(NOISE)
    time.sleep(body_s / 2)  # sleep: stands for the command's own work
    send("charge")
    time.sleep(body_s / 2)  # sleep: stands for the command's own work
    send("end")
    print(os.environ["ROTA_FENCE"])


def daemon() -> None:
    if os.fork() == 0:
        os.setsid()
        time.sleep(STAYS_S)  # sleep: it means to stay
        os._exit(0)


def told(number: int, frame: object) -> None:
    send("told")
    os._exit(1)


def send(kind: str) -> None:
    effect = {
        "id": os.environ["ROTA_EXECUTION_ID"],
        "fence": int(os.environ["ROTA_FENCE"]),
        "kind": kind,
        "fenced": kind == "charge",
        "pid": os.getpid(),
    }
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(PATIENCE_S)
        line.connect("\0" + os.environ["KILL_RECEIVER"])
        line.sendall(json.dumps(effect).encode())
        line.shutdown(socket.SHUT_WR)
        line.recv(100)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[3]))
