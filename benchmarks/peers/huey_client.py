"""Enqueues for huey, in its own environment: `bulk COUNT` as fast as it can, `paced COUNT` one every 20 ms.

Prints the seconds that it took.
"""

from __future__ import annotations

import sys
import time

from benchmarks.peers.huey_app import stamp, touch

PACE_S = 0.02


def main() -> None:
    way, count = sys.argv[1], int(sys.argv[2])
    began = time.perf_counter()
    for number in range(count):
        if way == "paced":
            time.sleep(PACE_S)
            stamp(number, time.time())
        else:
            touch()
    print(time.perf_counter() - began)


main()
