"""`python -m benchmarks.answering PORT`: answers every request at once, over connections that stay open."""

from __future__ import annotations

import asyncio
import sys

HEAD_END = b"\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = (await reader.readuntil(HEAD_END)).lower()
            _, found, rest = head.partition(b"\r\ncontent-length:")
            if found:
                await reader.readexactly(int(rest.partition(b"\r\n")[0]))
            writer.write(ANSWER)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main(port: int) -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
