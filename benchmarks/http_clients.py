"""Clients of the section `http`, each in a process of its own: `python -m benchmarks.http_clients WHAT PORT AMOUNT`.

Plain sockets with prepared requests: a client library would take more time than the server. Each prints one line of
JSON. `hold` reads paths from its standard input, keeps a request to each of them open, and answers when all have ended,
or when its input is closed.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import resource
import select
import socket
import sys
import threading
import time

CONNECTIONS = 64
LINES = 500
"""Lines in one piece of a stream."""
BODY = b'{"job":"echo","arguments":{"number":7}}'
OF_ONE_ADDRESS = 10
"""Streams that one address opens; a server allows a caller only some."""
LIMIT_S = 120.0
_METRICS = "created,success,failed,startLatency.p50,startLatency.p95,startLatency.p99,busy,slots"
OVERVIEW = {
    "/overview": 2.0,
    "/outlook": 2.0,
    "/stats?from=1h&step=60&usual=true&" + "&".join(f"metrics={name}" for name in _METRICS.split(",")): 5.0,
    "/counts?of=executions&dead=true": 5.0,
}
"""The requests of an open Overview while executions end, and the least seconds between two of each."""


def single(port: int, seconds: float) -> dict[str, float]:
    """Executions one by one, from `CONNECTIONS` connections."""
    whole = _head(port, "POST", "/executions", "Content-Type: application/json", f"Content-Length: {len(BODY)}") + BODY
    connections = {made.fileno(): made for made in (_connected(port) for _ in range(CONNECTIONS))}
    poll = _watched(connections)
    began, count, parts = time.perf_counter(), 0, dict[int, bytes]()
    for connection in connections.values():
        connection.sendall(whole)
    while time.perf_counter() < began + seconds:
        for number, _ in poll.poll(1.0):
            answer = parts.pop(number, b"") + connections[number].recv(65536)
            if not _is_whole(answer):
                parts[number] = answer
                continue
            assert answer.startswith(b"HTTP/1.1 201"), answer
            count += 1
            connections[number].sendall(whole)
    return {"count": count, "seconds": time.perf_counter() - began}


def lines(port: int, count: float) -> dict[str, float]:
    """Executions as lines of one request, and when the first line of the answer came."""
    connection = _connected(port)
    headers = ("Content-Type: application/x-ndjson", "Transfer-Encoding: chunked", "Connection: close")
    connection.sendall(_head(port, "POST", "/executions", *headers))
    pieces = int(count) // LINES
    chunk = b"%x\r\n%s\r\n" % (len(BODY + b"\n") * LINES, (BODY + b"\n") * LINES)
    began, first_s, answer = time.perf_counter(), 0.0, b""
    for number in range(pieces + 1):
        connection.sendall(chunk if number < pieces else b"0\r\n\r\n")
        while select.select([connection], [], [], 0 if number < pieces else LIMIT_S)[0]:
            if not (piece := connection.recv(65536)):
                break
            answer = answer[-1000:] + piece
            if not first_s and b'"committed"' in answer:
                first_s = time.perf_counter() - began
    assert b'"accepted":%d' % (pieces * LINES) in answer, answer[-500:]
    return {"count": pieces * LINES, "seconds": time.perf_counter() - began, "first_s": first_s}


def hold(port: int, _: float) -> dict[str, float]:
    """Requests that stay open. Prints a line when the server has got all of them."""
    paths = [line.strip() for line in iter(sys.stdin.readline, "\n")]
    connections = {}
    for number, path in enumerate(paths):
        made = _connected(port, f"127.0.0.{2 + number // OF_ONE_ADDRESS % 250}")
        connections[made.fileno()] = made
        made.sendall(_head(port, "GET", path))
    print("open", flush=True)
    poll = _watched(connections)
    poll.register(sys.stdin.fileno(), select.EPOLLIN)
    began = time.perf_counter()
    while connections and time.perf_counter() < began + LIMIT_S:
        for number, _event in poll.poll(1.0):
            if number == sys.stdin.fileno():
                return {"count": len(connections), "seconds": time.perf_counter() - began}
            answer = connections[number].recv(65536)
            assert not answer.startswith(b"HTTP/1.1") or answer.startswith(b"HTTP/1.1 200"), answer
            if b"content-length" in answer.lower() or not answer:
                poll.unregister(number)
                connections.pop(number).close()
    return {"count": len(connections), "seconds": time.perf_counter() - began}


def watch(port: int, count: float) -> dict[str, float]:
    """Open Overviews: each keeps a stream, and fetches the parts of the page after a pulse, each in its own interval.
    Prints a line when all streams are open, and ends when its input is closed."""
    answered = [0] * int(count)
    opened = threading.Semaphore(0)
    for number in range(int(count)):
        threading.Thread(target=_overview, args=(port, number, answered, opened), daemon=True).start()
    for _ in answered:
        assert opened.acquire(timeout=LIMIT_S), "a stream did not open"
    print("open", flush=True)
    began = time.perf_counter()
    sys.stdin.read()
    return {"count": sum(answered), "seconds": time.perf_counter() - began}


def _overview(port: int, number: int, answered: list[int], opened: threading.Semaphore) -> None:
    address = ("127.0.0.1", port, LIMIT_S, (f"127.0.0.{2 + number}", 0))
    stream, fetch = (
        http.client.HTTPConnection(host, to, limit, source) for host, to, limit, source in (address, address)
    )
    stream.request("GET", "/api/v1/stream?topics=pulse,changes")
    events, fetched_at = stream.getresponse(), dict.fromkeys(OVERVIEW, 0.0)
    opened.release()
    for line in events:
        if line.startswith(b"event: pulse"):
            for path, every_s in OVERVIEW.items():
                if time.perf_counter() >= fetched_at[path] + every_s:
                    fetch.request("GET", f"/api/v1{path}")
                    answer = fetch.getresponse()
                    assert answer.read()
                    assert answer.status == 200, path
                    answered[number] += 1
                    fetched_at[path] = time.perf_counter()


def _head(port: int, method: str, path: str, *headers: str) -> bytes:
    parts = [f"{method} /api/v1{path} HTTP/1.1", f"Host: 127.0.0.1:{port}", *headers, "", ""]
    return "\r\n".join(parts).encode()


def _connected(port: int, source: str = "127.0.0.1") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), source_address=(source, 0))
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def _watched(connections: dict[int, socket.socket]) -> select.epoll:
    poll = select.epoll()
    for number in connections:
        poll.register(number, select.EPOLLIN)
    return poll


def _is_whole(answer: bytes) -> bool:
    head, separator, body = answer.partition(b"\r\n\r\n")
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    return bool(separator) and len(body) >= int(length)


if __name__ == "__main__":
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    what, address, amount = sys.argv[1:]
    found = {"single": single, "lines": lines, "hold": hold, "watch": watch}[what](int(address), float(amount))
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({**found, "cpu_s": used.ru_utime + used.ru_stime}))
