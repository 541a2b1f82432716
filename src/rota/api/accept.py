"""Which of the media types that a route can answer with a client wants, by the header Accept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rota.api.problem import Problem


def chosen(headers: Mapping[str, str], offered: Sequence[str]) -> str:
    """The one that the client likes best; of several that it likes alike the first offered one."""
    ranges = [_range(part) for part in headers.get("accept", "*/*").lower().split(",") if part.strip()]
    weights = {media: _weight(media, ranges) for media in offered}
    best = max(offered, key=lambda media: weights[media])
    if weights[best] <= 0:
        raise Problem("not_acceptable", f"this can be answered as {', '.join(offered)}: send Accept with one of these")
    return best


def _weight(media: str, ranges: Sequence[tuple[str, float]]) -> float:
    """By the narrowest range that fits."""
    kind = media.partition("/")[0]
    for name in (media, f"{kind}/*", "*/*"):
        found = [weight for one, weight in ranges if one == name]
        if found:
            return found[0]
    return 0.0 if ranges else 1.0


def _range(part: str) -> tuple[str, float]:
    name, *parameters = (piece.strip() for piece in part.split(";"))
    for one in parameters:
        if one.startswith("q="):
            try:
                return name, min(1.0, max(0.0, float(one[2:])))
            except ValueError:
                return name, 0.0
    return name, 1.0
