"""The world outside of a chaos run: the receiver of the kill test, which also takes effects as HTTP requests.

A request carries the execution's id as its idempotency key, and its fence; it is one fenced effect, and the answer is
the fence.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from tests.kill.bodies import CHARGE
from tests.kill.effects import FILE, Effect
from tests.kill.receiver import Receiver

PORT = "CHAOS_PORT"
MOST_LINES = 100


class Gateway(Receiver):
    """One ledger, two doors."""

    async def open(self, port: int) -> None:
        server = await asyncio.start_server(self._respond, "127.0.0.1", port)
        async with server:
            await server.serve_forever()

    async def _respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            headers = await _headers(reader)
            await reader.readexactly(int(headers.get("content-length", "0")))
            fence = int(headers["x-rota-fence"])
            self.record(Effect(headers["idempotency-key"], fence, CHARGE, fenced=True, pid=0))
            body = str(fence).encode()
            head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            writer.write(f"{head}Connection: close\r\n\r\n".encode() + body)
            await writer.drain()
        except (OSError, EOFError, KeyError, ValueError):
            return  # A sender that was killed in the middle of a request has sent nothing.
        finally:
            writer.close()


async def _headers(reader: asyncio.StreamReader) -> dict[str, str]:
    await reader.readline()
    found: dict[str, str] = {}
    for _ in range(MOST_LINES):
        name, _, value = (await reader.readline()).decode("latin-1").partition(":")
        if not name.strip():
            break
        found[name.strip().lower()] = value.strip()
    return found


async def main(folder: Path, name: str) -> None:
    gateway = Gateway(folder / FILE)
    await asyncio.gather(gateway.open(int(os.environ[PORT])), gateway.serve(name))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
