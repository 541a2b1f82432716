"""Server-sent events: the form of `text/event-stream`."""

from __future__ import annotations

HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""Without the second one, nginx would collect events before it passes them on."""


def event(name: str, data: bytes, id: str | None = None) -> bytes:
    """One event. JSON has no line breaks, and other data gets one `data:` line for each of its lines."""
    lines = [f"event: {name}".encode()]
    if id is not None:
        lines.append(f"id: {id}".encode())
    lines += [b"data: " + line for line in data.split(b"\n")]
    return b"\n".join(lines) + b"\n\n"


def retry(milliseconds: int) -> bytes:
    """How long a client waits before it reconnects."""
    return f"retry: {milliseconds}\n\n".encode()
