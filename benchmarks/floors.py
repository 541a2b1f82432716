"""What must be reached, and what is aimed at, on the reference machine (2 cores). `None` is no aim."""

from __future__ import annotations

_GROWTH = ("history_10x", "history_100x", "scheduled")
_GROWN = [
    *(f"{speed}_{what}" for speed in ("drain", "cycle") for what in _GROWTH),
    "drain_backlog",
    "cycle_backlog_100x",
    "cycle_backlog_1000x",
]

Floors = dict[str, tuple[float, float | None]]

_SQLITE: Floors = {
    "bulk_small": (50_000, 100_000),
    "bulk_large": (50_000, 100_000),
    "enqueue_1": (2_000, None),
    "enqueue_16": (10_000, None),
    "enqueue_32": (10_000, None),
    "drain": (15_000, 30_000),
    "drain_200": (15_000, 30_000),
    "drain_sync": (6_000, None),
    "pickup_p50": (4, None),
    "pickup_p99": (12, None),
    "rss": (90, 60),
    "idle_cpu": (1, None),
    "idle_queries": (1, None),
    **dict.fromkeys(_GROWN, (0.8, None)),
}
_POSTGRESQL: Floors = {
    "bulk_small": (80_000, 150_000),
    "bulk_large": (80_000, 150_000),
    "enqueue_1": (2_000, None),
    "enqueue_32": (8_000, None),
    "emit_none": (5_000, None),
    "http_single": (6_000, None),
    "http_share": (70, None),
    "http_lines": (50_000, None),
    "http_lines_first": (200, None),
    "drain": (30_000, 45_000),
    "drain_sync": (8_000, None),
    "pickup_p50": (3, None),
    "pickup_p99": (10, None),
    "half_p99": (100, None),
    "priority_p99": (100, None),
    "snapshot_ratio": (0.5, 0.8),
    "rss": (90, 60),
    "idle_cpu": (1, None),
    "idle_queries": (1, None),
    **dict.fromkeys(_GROWN, (0.9, None)),
}
_TIMETABLE: Floors = {"next_alike": (200_000, None), "steady_late_p99": (100, None), "herd": (30_000, None)}
_WORKFLOWS: Floors = {"chain_step": (5, 3), "fan_rate": (10_000, None), "beside_p99": (1_000, None)}
_DASHBOARD: Floors = {"page_executions_p99": (200, None), "page_overview_p99": (300, None), "open_share": (98, None)}
_SQLITE |= _TIMETABLE | _WORKFLOWS | _DASHBOARD
_POSTGRESQL |= _TIMETABLE | _WORKFLOWS | _DASHBOARD
FLOORS: dict[str, Floors] = {"sqlite": _SQLITE, "postgresql": _POSTGRESQL}

# How many times better than a peer's figure Rota's must be.
TIMES: dict[str, dict[str, float]] = {
    "sqlite": {"huey_sqlite_drain": 5},
    "postgresql": {"pgqueuer_postgresql_drain": 2},
}
