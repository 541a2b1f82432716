"""The canonical form of JSON as one text. The source only hashes it, piece by piece."""

from __future__ import annotations

from rota.domain import payload


def canonical(text: str) -> str:
    pieces: list[str] = []
    payload.write_canonical(text, pieces.append)
    return "".join(pieces)
