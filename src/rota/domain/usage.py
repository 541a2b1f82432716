"""The resources that an attempt in a process of its own has used, and how that process ended."""

from __future__ import annotations

import msgspec


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """The usage of the whole tree of processes, as far as the system reports it."""

    cpu_s: float = 0.0
    peak_bytes: int = 0
    exit_code: int | None = None
    signal: str | None = None
    """The name of the signal that ended it, such as SIGKILL; None if it ended by itself."""


decode = msgspec.json.Decoder(Usage).decode


def encode(usage: Usage) -> str:
    return msgspec.json.encode(usage).decode()
