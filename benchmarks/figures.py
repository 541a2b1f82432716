"""Every figure there is: what it means, its floor, its aim, and the peer's figure it is held against."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import msgspec

from benchmarks.sizes import Size


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the table."""

    name: str
    section: str
    what: str
    unit: str
    grows: bool = True
    """Whether more is better."""
    floor: float | None = None
    aim: float | None = None
    peer: str | None = None
    """The figure of a peer, measured in the same rounds."""
    peer_floor: float | None = None
    """How many times better than the peer's it must be."""

    def best(self, samples: Sequence[float]) -> float:
        return max(samples) if self.grows else min(samples)

    def verdict(self, samples: Sequence[float]) -> str:
        """By the median; `noisy` if only the best sample reaches the floor."""
        if self.floor is None:
            return ""
        if self._reaches(statistics.median(samples)):
            return "pass"
        return "noisy" if self._reaches(self.best(samples)) else "below"

    def ratio(self, samples: Sequence[float], peers: Sequence[float]) -> float:
        """How many times better than the peer, by the medians."""
        ours, theirs = statistics.median(samples), statistics.median(peers)
        return ours / theirs if self.grows else theirs / ours

    def _reaches(self, value: float) -> bool:
        assert self.floor is not None
        return value >= self.floor if self.grows else value <= self.floor


def catalogue(size: Size) -> list[Figure]:
    """All figures in the order of the table."""
    return [*_raw(), *_enqueue(size), *_drain(), *_latency(), *_idle(), *_growth(size), *_peers()]


def _raw() -> list[Figure]:
    return [
        Figure(name="raw_commits", section="raw", what="bare SQLite: durable commits of one row", unit="/s"),
        Figure(name="raw_rows", section="raw", what="bare SQLite: rows in durable commits of 100", unit="/s"),
    ]


def _enqueue(size: Size) -> list[Figure]:
    small, large = (f"enqueue_many of {count:,}" for count in size.bulk)

    def single(threads: int, what: str, floor: float) -> Figure:
        text = f"single durable enqueue, {what}"
        return Figure(name=f"enqueue_{threads}", section="enqueue", what=text, unit="/s", floor=floor)

    return [
        Figure(name="bulk_small", section="enqueue", what=small, unit="/s", floor=50_000, aim=100_000),
        Figure(name="bulk_large", section="enqueue", what=large, unit="/s", floor=50_000, aim=100_000),
        single(1, "1 thread", 2_000),
        single(16, "16 threads", 10_000),
        single(32, "32 threads", 10_000),
    ]


def _drain() -> list[Figure]:
    def drain(name: str, what: str, floor: float | None = None, aim: float | None = None) -> Figure:
        return Figure(name=name, section="drain", what=what, unit="/s", floor=floor, aim=aim)

    return [
        drain("drain", "drain, no-op async job, default concurrency", 15_000, 30_000),
        drain("drain_200", "drain, no-op async job, concurrency 200", 15_000, 30_000),
        drain("drain_sync", "drain, no-op sync job in threads", 6_000),
        drain("together_enqueue", "enqueue (by 1,000) while draining"),
        drain("together_drain", "drain while enqueuing"),
    ]


def _latency() -> list[Figure]:
    def delay(name: str, what: str, floor: float | None = None) -> Figure:
        return Figure(name=name, section="latency", what=what, unit="ms", grows=False, floor=floor)

    return [
        delay("pickup_p50", "idle pick-up across processes, p50", 4),
        delay("pickup_p99", "idle pick-up across processes, p99", 12),
        delay("result_p50", "enqueue to result(), p50"),
        delay("result_p99", "enqueue to result(), p99"),
    ]


def _idle() -> list[Figure]:
    def cost(name: str, what: str, unit: str, floor: float | None = None, aim: float | None = None) -> Figure:
        return Figure(name=name, section="idle", what=what, unit=unit, grows=False, floor=floor, aim=aim)

    return [
        cost("rss_supervisor", "memory of an idle supervisor", "MB"),
        cost("rss_child", "memory of its idle child", "MB"),
        cost("rss", "memory of an idle worker (both)", "MB", 90, 60),
        cost("pss", "the same, shared pages counted once", "MB"),
        cost("rss_after", "memory of a worker after a drain", "MB"),
        cost("idle_cpu", "processor of an idle worker", "% of a core", 1),
        cost("idle_queries", "queries of an idle worker", "/s", 1),
    ]


def _growth(size: Size) -> list[Figure]:
    def growth(name: str, what: str) -> Figure:
        return Figure(name=name, section="growth", what=what, unit="of empty", floor=0.8)

    few, many = size.history
    base, some, most = size.backlog
    return [
        Figure(name="drain_empty", section="growth", what="empty: drain, as the base of the next lines", unit="/s"),
        growth("drain_history_10x", f"drain speed with {few:,} finished"),
        growth("drain_history_100x", f"drain speed with {many:,} finished"),
        growth("drain_backlog", f"drain speed with {most:,} ready"),
        growth("drain_scheduled", f"drain speed with {size.scheduled:,} scheduled"),
        Figure(name="cycle_empty", section="growth", what="empty: the store alone, a hundred at a time", unit="/s"),
        growth("cycle_history_10x", f"store speed with {few:,} finished"),
        growth("cycle_history_100x", f"store speed with {many:,} finished"),
        growth("cycle_backlog_100x", f"store speed with {some:,} ready ({base:,} is empty)"),
        growth("cycle_backlog_1000x", f"store speed with {most:,} ready"),
        growth("cycle_scheduled", f"store speed with {size.scheduled:,} scheduled"),
    ]


def _peers() -> list[Figure]:
    def rate(name: str, what: str, peer: str | None = None, peer_floor: float | None = None) -> Figure:
        return Figure(name=name, section="peers", what=what, unit="/s", peer=peer, peer_floor=peer_floor)

    def cost(name: str, what: str, unit: str, peer: str | None = None) -> Figure:
        return Figure(name=name, section="peers", what=what, unit=unit, grows=False, peer=peer)

    figures = [
        rate("rota_drain", "Rota: drain, the peer's task body", "huey2_drain", 5),
        rate("rota_enqueue", "Rota: single durable enqueue, 1 thread", "huey2_enqueue"),
        cost("rota_p50", "Rota: idle pick-up p50", "ms", "huey2_p50"),
        cost("rota_p99", "Rota: idle pick-up p99", "ms", "huey2_p99"),
        cost("rota_rss", "Rota: memory of the worker", "MB", "huey2_rss"),
    ]
    for workers, words in ((2, "huey, 2 processes"), (1, "huey, 1 process")):
        figures += [
            rate(f"huey{workers}_drain", f"{words}: drain"),
            rate(f"huey{workers}_enqueue", f"{words}: single durable enqueue"),
            cost(f"huey{workers}_p50", f"{words}: idle pick-up p50", "ms"),
            cost(f"huey{workers}_p99", f"{words}: idle pick-up p99", "ms"),
            cost(f"huey{workers}_rss", f"{words}: memory of the workers", "MB"),
        ]
    return figures
