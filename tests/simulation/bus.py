"""Hints on their way between processes: late, doubled, or never there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from rota.store.hints import Hint, Listener
from tests.simulation.faults import Fault, Weather
from tests.simulation.loop import Process

Hear = Callable[[list[Hint]], None]


class SimBus:
    """Implements `rota.store.hints.Bus` for the sender; receivers are called inside their process."""

    def __init__(self, weather: Weather, entropy: Random) -> None:
        self._weather = weather
        self._entropy = entropy
        self._ears: dict[Process, tuple[tuple[type[Hint], ...], Hear]] = {}

    def attach(self, process: Process, hear: Hear, *kinds: type[Hint]) -> None:
        """`hear` is called with hints of these kinds for as long as the process lives."""
        self._ears[process] = (kinds, hear)
        process.mourn(lambda: self.detach(process))

    def detach(self, process: Process) -> None:
        self._ears.pop(process, None)

    def send(self, hints: Sequence[Hint]) -> None:
        for hint in hints:
            for process, (kinds, hear) in self._ears.items():
                if isinstance(hint, kinds):
                    self._deliver(process, hear, hint)

    def listen(self, *kinds: type[Hint]) -> Listener:
        raise NotImplementedError("simulated processes are attached instead")

    def close(self) -> None:
        self._ears.clear()

    def _deliver(self, process: Process, hear: Hear, hint: Hint) -> None:
        if self._strikes(Fault.HINT_LOST):
            return
        copies = 2 if self._strikes(Fault.HINT_DOUBLED) else 1
        for _ in range(copies):
            late_s = self._entropy.uniform(0.5, 5) if self._strikes(Fault.HINT_LATE) else 0.0
            process.call(late_s + self._entropy.uniform(0.0005, 0.01), hear, [hint])

    def _strikes(self, fault: Fault) -> bool:
        # Also when the weather has cleared: everything must get on without hints.
        struck = self._entropy.random() < self._weather.hints.get(fault, 0.0)
        if struck:
            self._weather.note(fault)
        return struck
