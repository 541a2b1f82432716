"""How a process ended that a spawner has started."""

from __future__ import annotations

import signal

import msgspec

from rota.domain.usage import Usage


class ExitStatus(msgspec.Struct, frozen=True):
    """How a process ended, and what its whole tree cost.

    The peak is that of one process, or of the tree where that was seen to be more. It is never below the few megabytes
    of the spawner itself.
    """

    exit_code: int | None = None
    signal: int | None = None
    cpu_s: float = 0.0
    peak_bytes: int = 0
    out_of_memory: bool = False
    error: str | None = None
    """Why nothing better is known, if the spawner is gone."""

    @property
    def how(self) -> str:
        return f"was ended by {signal_name(self.signal)}" if self.signal else f"ended with exit code {self.exit_code}"

    @property
    def usage(self) -> Usage:
        name = None if self.signal is None else signal_name(self.signal)
        return Usage(self.cpu_s, self.peak_bytes, self.exit_code, name)


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
