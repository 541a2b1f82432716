"""When a queue will be empty."""

from __future__ import annotations

import pytest

from rota.domain.outlook import forecast


@pytest.mark.parametrize(
    ("queued", "arrive", "end", "is_paused", "is_served", "outlook", "empty_in", "if_resumed"),
    [
        (0, 0.0, 0.0, False, True, "now", 0.0, None),
        (0, 5.0, 5.0, False, False, "now", 0.0, None),
        (18, 92.0, 92.1, False, True, "now", 0.2, None),
        (600, 1.0, 11.0, False, True, "empties", 60.0, None),
        (212, 18.4, 16.1, False, True, "growing", None, None),
        (64, 0.0, 0.0, False, True, "unknown", None, None),
        (64, 2.0, 2.0, False, True, "unknown", None, None),
        (40, 0.0, None, False, True, "unknown", None, None),
        (64, 0.0, 3.0, False, False, "never", None, None),
        (1830, 2.0, 0.0, True, True, "paused", None, 228.8),
        (1830, 36.0, 0.0, True, True, "paused", None, None),
        (0, 0.0, 0.0, True, True, "paused", None, None),
    ],
)
def test_a_queue(
    queued: int,
    arrive: float,
    end: float | None,
    is_paused: bool,
    is_served: bool,
    outlook: str,
    empty_in: float | None,
    if_resumed: float | None,
) -> None:
    found = forecast(queued, arrive, end, 10.0, is_paused=is_paused, is_served=is_served)
    assert (found.outlook, found.empty_in_s, found.if_resumed_s) == (outlook, empty_in, if_resumed)
