"""Decoders for the rows of named statements, one for each kind of record.

Several threads read and write at once, and an operation names its kind of record only when it runs. So the decoders are
made one at a time: `domain/decoding.py` says what happens otherwise.
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar

import msgspec

from rota.store.port import Row

T = TypeVar("T")
_lock = threading.Lock()
_decoders: dict[type[Any], msgspec.json.Decoder[Any]] = {}


def decoder(kind: type[T]) -> msgspec.json.Decoder[list[T]]:
    """Decodes a JSON array of rows."""
    known = _decoders.get(kind)
    if known is None:
        with _lock:
            known = _decoders[kind] = msgspec.json.Decoder(list[kind])  # type: ignore[valid-type]
    return known


def converted(rows: list[Row], kind: type[T]) -> list[T]:
    decoder(kind)
    return msgspec.convert(rows, list[kind])  # type: ignore[valid-type]
