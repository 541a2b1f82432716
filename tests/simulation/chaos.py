"""What happens to machines, networks and clocks while the clients are busy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from random import Random

from tests.simulation.calls import Network
from tests.simulation.clocks import StoreClock
from tests.simulation.faults import Fault, Weather
from tests.simulation.history import Row
from tests.simulation.loop import VirtualLoop
from tests.simulation.machine import Machine

HOUR_S = 3600.0
JUMPS = (Fault.CLOCK_FORWARD, Fault.CLOCK_BACK)


class Chaos:
    """Lets one event follow the other, and heals everything in the end."""

    def __init__(
        self,
        loop: VirtualLoop,
        machines: Sequence[Machine],
        backbone: Network,
        clock: StoreClock,
        weather: Weather,
        entropy: Random,
        lease_s: float,
        running: Callable[[], list[Row]],
    ) -> None:
        """`running()` are the executions that run now."""
        self._loop = loop
        self._machines = machines
        self._backbone = backbone
        self._clock = clock
        self._weather = weather
        self._entropy = entropy
        self._lease_s = lease_s
        self._running = running

    async def rage(self, seconds: float) -> None:
        until = self._loop.time() + seconds
        while self._weather.events:
            wait_s = self._entropy.expovariate(1 / self._weather.every_s)
            if self._loop.time() + wait_s >= until:
                break
            await asyncio.sleep(wait_s)
            faults = list(self._weather.events)
            fault = self._entropy.choices(faults, list(self._weather.events.values()))[0]
            if fault in JUMPS and not self._may_jump(until):
                continue
            machine = self._one_of_the_busy()
            if fault is not Fault.FORGED:
                self._weather.note(fault)
                self._happen(fault, machine)
            elif machine.forge(self._running()):
                self._weather.note(fault)
        await asyncio.sleep(until - self._loop.time())

    def heal(self) -> None:
        self._weather.is_clear = True
        self._backbone.heal()
        self._clock.catch_up()
        for machine in self._machines:
            machine.network.heal()
            for process in machine.children() + machine.supervisors():
                process.go_on()
            if machine.setup.missing:
                # The deploy goes through: the new code has every job.
                machine.setup.missing.clear()
                machine.kill()
            machine.boot()

    def _happen(self, fault: Fault, machine: Machine) -> None:
        match fault:
            case Fault.BLACK_HOLE:
                machine.network.darken(self._some_leases(3))
            case Fault.DEAF:
                machine.network.deafen(self._some_leases(2))
            case Fault.OUTAGE:
                self._backbone.darken(self._some_leases(2))
            case Fault.CHILD_KILLED:
                for process in machine.children():
                    process.kill()
            case Fault.MACHINE_KILLED:
                self._kill(machine)
            case Fault.ALL_KILLED:
                for each in self._machines:
                    self._kill(each)
            case Fault.CHILD_STOPPED | Fault.SUPERVISOR_STOPPED | Fault.MACHINE_STOPPED:
                self._stop(fault, machine)
            case Fault.DRAINED | Fault.HURRIED:
                self._drain(machine, hurried=fault is Fault.HURRIED)
            case Fault.CLOCK_FORWARD:
                self._clock.jump(self._entropy.choice([self._lease_s, 60.0, HOUR_S]))
            case Fault.CLOCK_BACK:
                self._clock.jump(-self._entropy.choice([self._lease_s, 60.0, HOUR_S]))
            case _:
                raise AssertionError(f"{fault} is not an event")

    def _one_of_the_busy(self) -> Machine:
        """Faults find more where executions run."""
        some = self._entropy.choices(self._machines, k=3)
        return max(some, key=lambda machine: machine.running)

    def _kill(self, machine: Machine) -> None:
        machine.kill()
        self._loop.outside(self._some_leases(2), machine.boot)

    def _stop(self, fault: Fault, machine: Machine) -> None:
        stopped = {
            Fault.CHILD_STOPPED: machine.children(),
            Fault.SUPERVISOR_STOPPED: machine.supervisors(),
            Fault.MACHINE_STOPPED: machine.children() + machine.supervisors(),
        }
        seconds = self._entropy.uniform(1.5, 4) * self._lease_s
        for process in stopped[fault]:
            process.stop()
            self._loop.outside(seconds, process.go_on)

    def _may_jump(self, heals_at: float) -> bool:
        """Not twice in a moment: two jumps that cancel out between two readings of the clock cannot be noticed."""
        others = [at for at, _ in self._clock.jumps[-1:]] + [heals_at]
        return all(abs(at - self._loop.time()) > 2 * self._lease_s for at in others)

    def _drain(self, machine: Machine, *, hurried: bool) -> None:
        hasten = machine.drain()
        if hurried:
            self._loop.outside(self._entropy.uniform(0, 1), hasten)
        self._keep_booting(machine)

    def _keep_booting(self, machine: Machine) -> None:
        """A deploy: as soon as the old one has left, the new one comes."""
        if machine.is_up:
            self._loop.outside(0.2, self._keep_booting, machine)
        else:
            machine.boot()

    def _some_leases(self, most: float) -> float:
        return self._entropy.uniform(0.2, most) * self._lease_s
