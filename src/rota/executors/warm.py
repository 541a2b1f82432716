"""One process with the app loaded, as the worker sees it, and the calls that are made there one after the other."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence

import msgspec

from rota.clock import SystemClock
from rota.domain import payload
from rota.domain.claim import Claim
from rota.domain.outcome import Failed, GivenBack
from rota.domain.status import Reason
from rota.domain.usage import Usage
from rota.executors.channel import Channel
from rota.executors.context import Context
from rota.executors.ended import Ended
from rota.executors.frames import Answer, Call, Message, Ready, Spent, Stop, Told, Wrote
from rota.executors.lines import Lines, last_of
from rota.executors.stage import Spawned, Stage

log = logging.getLogger("rota.engine")
GRACE_S = 10.0
START_S = 60.0
_clock = SystemClock()
_spoilers: set[str] = set()
"""Jobs of which it was said that they need a process each."""


class Turn:
    """One call: it waits for a process, is made there, and is answered."""

    __slots__ = ("answered", "claim", "context", "memory_bytes", "since", "slice_s", "warm")

    def __init__(self, claim: Claim, context: Context, slice_s: float | None, memory_bytes: int | None) -> None:
        self.claim = claim
        self.context = context
        self.slice_s = slice_s
        self.memory_bytes = memory_bytes
        self.since = _clock.monotonic()
        self.warm: Warm | None = None
        """Where the call was made, once it was."""
        self.answered: asyncio.Future[Answer | GivenBack | Failed | str | None] = (
            asyncio.get_running_loop().create_future()
        )
        """A text says why there is no process for it yet; None says that the process ended without an answer."""


class Warm:
    """Makes one call at a time. `free(self)` is called as soon as it can make the next."""

    def __init__(
        self,
        spawned: Spawned,
        end: socket.socket,
        outputs: Sequence[Lines],
        memory_bytes: int | None,
        free: Callable[[Warm], None],
        apart: Stage | None = None,
    ) -> None:
        """`apart` is the stage that it is on, if that is its own."""
        self.spawned = spawned
        self.memory_bytes = memory_bytes
        self.born_at = _clock.monotonic()
        self.jobs = 0
        self.fresh_bytes = 0
        """Its size before its first job."""
        self.spent = Spent()
        """What it had cost when the running call began."""
        self.spoilt = ""
        """What the last call has left there, so that no other is made."""
        self._free = free
        self._apart = apart
        self._outputs = outputs
        self._turn: Turn | None = None
        loop = asyncio.get_running_loop()
        self._greeting: asyncio.Future[Ready | None] = loop.create_future()
        self._last_word: asyncio.Future[None] = loop.create_future()
        self._channel = Channel(end, self._hear, self._miss)

    async def greet(self) -> str | Failed:
        """Waits until the app is loaded; returns why it is not, if so. A failure if it never can be."""
        try:
            async with asyncio.timeout(START_S):
                hello = await self._greeting
        except TimeoutError:
            return f"its app was not loaded within {START_S:g} s"
        if hello is not None:
            self.spent, self.fresh_bytes = hello.spent, hello.spent.rss_bytes
            is_too_large = not hello.error and self.fresh_bytes > (self.memory_bytes or self.fresh_bytes)
            return _too_large(self.fresh_bytes, self.memory_bytes) if is_too_large else hello.error
        ended = await self.spawned.wait()
        self._drain()
        if ended.out_of_memory:
            return _too_large(ended.peak_bytes, self.memory_bytes, self.last_lines())
        return "\n".join([f"its process {ended.how} while the app was loaded", *self.last_lines().splitlines()])

    def begin(self, turn: Turn) -> None:
        """Makes the call. From now on its time runs."""
        assert self._turn is None, "one at a time"
        turn.context.begun()
        if self.spent.is_past_peak:
            self.spawned.begin_anew(self.spent.children_bytes)
        self._channel.send(Call(turn.claim, turn.context.deadline, turn.slice_s))
        self._turn, turn.warm = turn, self
        for output in self._outputs:
            output.forget()  # What the call before it has said explains nothing of its end.
            output.write = turn.context.write_lines

    @property
    def has_ended(self) -> bool:
        return self.spawned.has_ended or not self._channel.is_open

    @property
    def is_spoilt(self) -> bool:
        return bool(self.spoilt)

    @property
    def problem(self) -> str:
        """What was not understood of what it said, if anything: that is why it had to end."""
        return self._channel.problem

    def last_lines(self) -> str:
        out, error = self._outputs
        return last_of(out, error)

    def cost(self, ended: Ended) -> Usage:
        """Of the last call, without which the process would not have ended."""
        usage, spent = ended.usage, self.spent
        cpu_s, peak_bytes = max(0.0, usage.cpu_s - spent.cpu_s), max(usage.peak_bytes, spent.rss_bytes)
        return msgspec.structs.replace(usage, cpu_s=cpu_s, peak_bytes=peak_bytes)

    async def stop(self, grace_s: float) -> Ended:
        """Ends the process, and reads on until then: what the function keeps for the next attempt comes last."""
        self._channel.send(Stop())
        self.spawned.stop(grace_s)
        ended = await self.spawned.wait()
        await asyncio.shield(self._last_word)
        return ended

    async def end(self) -> Ended:
        """Lets it go, and waits until it has gone."""
        self._channel.close()
        self.spawned.stop(GRACE_S)
        ended = await self.spawned.wait()
        if self._apart is not None:
            self._apart.close()
        for output in self._outputs:
            output.close()
        return ended

    def _hear(self, message: Message) -> None:
        match message:
            case Answer():
                self._answer(message)
            case Wrote(stream=stream, text=text) if self._turn is not None:
                for output in self._outputs:
                    output.take()  # What was printed before comes before.
                self._turn.context.write_log(stream, text)
            case Told(state=state) if self._turn is not None:
                self._turn.context._tell(state)
            case Ready() if not self._greeting.done():
                self._greeting.set_result(message)
            case _:
                pass

    def _answer(self, answer: Answer) -> None:
        turn = self._ended_turn()
        if turn is None:
            return
        if turn.answered.done():  # Nobody waits any more: it is being stopped.
            self._say_last()
        else:
            self.jobs += 1
            self.spent, self.spoilt = answer.spent, answer.spoilt
            if self.spoilt and turn.claim.job not in _spoilers:
                _spoilers.add(turn.claim.job)
                log.info("job %s leaves %s: a process that ran it is not used again", turn.claim.job, self.spoilt)
            turn.answered.set_result(answer)
            self._free(self)

    def _miss(self) -> None:
        """The connection has ended, and so has the process, or it is about to."""
        if not self._greeting.done():
            self._greeting.set_result(None)
        self._say_last()
        turn = self._ended_turn()
        if turn is not None and not turn.answered.done():
            turn.answered.set_result(None)

    def _ended_turn(self) -> Turn | None:
        """The call that was made, with all that it has written."""
        turn, self._turn = self._turn, None
        self._drain()
        for output in self._outputs:
            output.write = None
        return turn

    def _say_last(self) -> None:
        if not self._last_word.done():
            self._last_word.set_result(None)

    def _drain(self) -> None:
        for output in self._outputs:
            output.drain()


def _too_large(size_bytes: int, most_bytes: int | None, last: str = "") -> Failed:
    took, allowed = (f"{size / 2**20:,.0f} MB" for size in (size_bytes, most_bytes or 0))
    said = f"to load the app alone took {took}, and {allowed} are allowed: the job was not begun"
    return Failed(payload.error("OutOfMemory", said, last), Reason.OUT_OF_MEMORY)
