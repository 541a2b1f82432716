"""Lines from a pipe are the same in any fragments and with any content."""

from __future__ import annotations

import os
import random

import pytest

from rota.executors.process.lines import LAST_LINES, MOST_LINE, Lines

PARTS = [
    b"",
    b"a line",
    b"with a return\r",
    b"two\r\r",
    b"\rin front",
    b"in\rside",
    "Grüße 🎉".encode(),
    b"broken \xff\xfe",
    b"cut off \xf0\x9f\x8e",
    b"nul \x00",
    b"x" * MOST_LINE,
    b"x" * MOST_LINE + b"\r",
    b"x" * (MOST_LINE + 1),
    b"x" * 3 * MOST_LINE,
    "ä".encode() * (MOST_LINE // 2),
    "ä".encode() * (MOST_LINE // 2 + 1),
    "🎉".encode() * (MOST_LINE // 4),
]


def plain(data: bytes) -> list[str]:
    """The lines, computed in the simplest way: one by one."""
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [
        line[:MOST_LINE].removesuffix(b"\r").decode(errors="replace") + ("…" if len(line) > MOST_LINE else "")
        for line in lines
    ]


class Piped:
    """Lines, and the end of the pipe at which the test writes."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.lines = Lines("stdout", self._write)

    def _write(self, stream: str, texts: list[str]) -> None:
        assert stream == "stdout"
        assert texts
        self.texts += texts

    def send(self, data: bytes) -> None:
        while data:
            data = data[os.write(self.lines.writing, data[:60_000]) :]
            self.lines._read()


@pytest.mark.parametrize("seed", range(40))
async def test_lines_are_read_as_they_were_written(seed: int) -> None:
    chance = random.Random(seed)
    odd = chance.choice([0, 0.01, 0.5])
    data = b"\n".join(chance.choice(PARTS) if chance.random() < odd else b"an ordinary line" for _ in range(300))
    data += chance.choice([b"", b"\n"])
    piped = Piped()
    left = data
    while left:
        count = chance.choice([1, 20, 3000, 60_000])
        piped.send(left[:count])
        left = left[count:]
    piped.lines.drain()
    piped.lines.close()
    assert piped.texts == plain(data)
    last = piped.lines.last()
    assert "\n".join(piped.texts[-LAST_LINES:]).endswith(last)
    assert last or not piped.texts[-1]


async def test_lines_without_a_reader_are_among_the_last_lines() -> None:
    piped = Piped()
    piped.lines.write = None
    piped.send(b"".join(b"%d\n" % number for number in range(100)))
    piped.lines.drain()
    assert piped.lines.last() == "\n".join(str(number) for number in range(100 - LAST_LINES, 100))
    assert piped.texts == []
    piped.lines.close()
