"""How much a server holds in memory for requests that are not answered yet. What exceeds it is refused."""

from __future__ import annotations

from rota.api.problem import Problem

MOST_REQUESTS = 2_000
MOST_BYTES = 64 * 1024 * 1024


class Room:
    """Counts the requests that wait for the database, and the bytes of bodies."""

    def __init__(self) -> None:
        self.requests = self.bytes = 0

    def request(self) -> Room:
        """A context for the time that a request waits for the database."""
        return self

    def __enter__(self) -> None:
        if self.requests >= MOST_REQUESTS:
            raise _full(f"{MOST_REQUESTS:,} requests wait for the database already")
        self.requests += 1

    def __exit__(self, *_: object) -> None:
        self.requests -= 1

    def held(self) -> Held:
        """For a body, or the parts of one, while they are in memory."""
        return Held(self)


class Held:
    """The bytes of one body."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self.bytes = 0

    def add(self, count: int) -> None:
        if self._room.bytes + count > MOST_BYTES:
            raise _full(f"the requests under way take {MOST_BYTES:,} bytes already")
        self._room.bytes += count
        self.bytes += count

    def release(self, count: int | None = None) -> None:
        """Gives bytes back: all of them, or so many."""
        count = self.bytes if count is None else count
        self._room.bytes -= count
        self.bytes -= count


def _full(why: str) -> Problem:
    return Problem("store_unavailable", f"the server is busy, {why}: nothing was changed, repeat the request later")
