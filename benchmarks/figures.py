"""All figures: what each means, its floor, its aim, and for a peer the figure of Rota that it is compared with."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import msgspec

from benchmarks.errands import BY_HAND, KINDS
from benchmarks.floors import FLOORS, TIMES
from benchmarks.peers.catalogue import ORCHESTRATORS, PEERS, PREFORK, Orchestrator, Peer
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
    ours: str | None = None
    """On a peer's line, Rota's figure, measured in the same rounds."""
    times: float | None = None
    """How many times better Rota must be."""

    def best(self, samples: Sequence[float]) -> float:
        return max(samples) if self.grows else min(samples)

    def verdict(self, samples: Sequence[float], ours: Sequence[float] | None = None) -> str:
        """By the median; `noisy` if only the best sample reaches the floor."""
        if self.times is not None and ours:
            return "pass" if self.ratio(samples, ours) >= self.times else "below"
        if self.floor is None:
            return ""
        if self._reaches(statistics.median(samples)):
            return "pass"
        return "noisy" if self._reaches(self.best(samples)) else "below"

    def ratio(self, samples: Sequence[float], ours: Sequence[float]) -> float:
        """How many times better Rota is than this peer, by the medians."""
        theirs, rotas = statistics.median(samples), statistics.median(ours)
        return rotas / theirs if self.grows else theirs / rotas

    def _reaches(self, value: float) -> bool:
        assert self.floor is not None
        return value >= self.floor if self.grows else value <= self.floor


def catalogue(size: Size, kind: str) -> list[Figure]:
    """All figures for a kind of database, in the order of the table."""
    figures = [
        *_raw(kind),
        *_enqueue(size),
        *_drain(),
        *_burst(size),
        *_latency(),
        *_load(size),
        *_executors(size),
        *_idle(),
        *_crowd(size),
    ]
    figures += [
        *_timetable(size),
        *_growth(size),
        *_workflows(size),
        *_sleepers(size),
        *_events(size),
        *_http(size),
        *_dashboard(size),
        *_rota(),
    ]
    for peer in PEERS:
        if peer.section(kind):
            figures += _peer(peer, kind)
    floors = FLOORS[kind]
    return [
        msgspec.structs.replace(figure, floor=floors[figure.name][0], aim=floors[figure.name][1])
        if figure.name in floors
        else figure
        for figure in figures
        if not _only_with_a_server(figure) or kind == "postgresql"
    ]


def _only_with_a_server(figure: Figure) -> bool:
    return figure.section == "snapshot" or figure.name in _OF_THE_SERVER or figure.name.endswith("server_cpu")


_OF_THE_SERVER = {"wide_transactions", "wide_written", "wide_longest"}


def _raw(kind: str) -> list[Figure]:
    name = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}[kind]
    return [
        Figure(name="raw_commits", section="raw", what=f"bare {name}: durable commits of one row", unit="/s"),
        Figure(name="raw_rows", section="raw", what=f"bare {name}: rows in durable commits of 100", unit="/s"),
    ]


def _enqueue(size: Size) -> list[Figure]:
    def rate(name: str, what: str) -> Figure:
        return Figure(name=name, section="enqueue", what=what, unit="/s")

    small, large = (f"enqueue_many of {count:,}" for count in size.bulk)
    return [
        rate("bulk_small", small),
        rate("bulk_large", large),
        rate("enqueue_1", "single durable enqueue, 1 thread"),
        rate("enqueue_16", "single durable enqueue, 16 threads"),
        rate("enqueue_32", "single durable enqueue, 32 threads"),
    ]


def _drain() -> list[Figure]:
    def drain(name: str, what: str) -> Figure:
        return Figure(name=name, section="drain", what=what, unit="/s")

    return [
        drain("drain", "drain, no-op async job, default concurrency"),
        drain("drain_200", "drain, no-op async job, concurrency 200"),
        drain("drain_sync", "drain, no-op sync job in threads"),
        drain("together_enqueue", "enqueue (by 1,000) while draining"),
        drain("together_drain", "drain while enqueuing"),
    ]


def _burst(size: Size) -> list[Figure]:
    def burst(name: str, what: str) -> Figure:
        return Figure(name=name, section="burst", what=f"{size.burst:,} at once, {what}", unit="/s")

    return [burst("burst_noop", "no-op async job"), burst("burst_noop_sync", "no-op sync job in threads")]


def _latency() -> list[Figure]:
    def delay(name: str, what: str) -> Figure:
        return Figure(name=name, section="latency", what=what, unit="ms", grows=False)

    return [
        delay("pickup_p50", "idle pick-up across processes, p50"),
        delay("pickup_p99", "idle pick-up across processes, p99"),
        delay("result_p50", "enqueue to result(), p50"),
        delay("result_p99", "enqueue to result(), p99"),
    ]


def _load(size: Size) -> list[Figure]:
    def delay(name: str, what: str) -> Figure:
        return Figure(name=name, section=name.split("_")[0], what=what, unit="ms", grows=False)

    def snapshot(name: str, what: str, unit: str) -> Figure:
        return Figure(name=name, section="snapshot", what=what, unit=unit)

    held = f"a snapshot held for {size.snapshot_s:g} s"
    return [
        Figure(name="half_rate", section="half", what="arrivals at half of the drain rate", unit="/s"),
        delay("half_p50", "pick-up at half of the drain rate, p50"),
        delay("half_p99", "pick-up at half of the drain rate, p99"),
        delay("priority_p50", "start of a high-priority arrival under full load, p50"),
        delay("priority_p99", "start of a high-priority arrival under full load, p99"),
        delay("priority_max", "start of a high-priority arrival under full load, latest"),
        snapshot("snapshot_free", "enqueue and drain together, without a reader", "/s"),
        snapshot("snapshot_held", f"the same in the last quarter of {held}", "/s"),
        snapshot("snapshot_ratio", f"speed in the last quarter of {held}", "of free"),
        snapshot("snapshot_worst", f"speed in the worst quarter of {held}", "of free"),
    ]


def _executors(size: Size) -> list[Figure]:
    def each(name: str, what: str, section: str, ours: str | None = None) -> Figure:
        return Figure(name=name, section=section, what=what, unit="ms", grows=False, ours=ours)

    def rate(name: str, what: str, section: str, ours: str | None = None) -> Figure:
        return Figure(name=name, section=section, what=what, unit="/s", ours=ours)

    figures = []
    for kind in KINDS:
        figures.append(each(f"{kind}_each", f"nothing, {kind}: enqueue to result", "kinds"))
        if kind in BY_HAND:
            figures.append(each(f"{kind}_over", f"nothing, {kind}: time above async", "kinds"))
            figures.append(each(f"hand_{kind}_each", f"nothing, {kind}: by hand", "kinds", f"{kind}_over"))
        figures.append(rate(f"{kind}_rate", f"nothing, {kind}: drain", "kinds"))
        if kind in BY_HAND:
            figures.append(rate(f"hand_{kind}_rate", f"nothing, {kind}: many by hand", "kinds", f"{kind}_rate"))
    for peer in PREFORK:
        for kind in ("process", "command"):
            name, what = f"{peer.slug}_{kind}", f"nothing, {kind}, {peer.name}"
            figures.append(each(f"{name}_each", f"{what}: enqueue to end", "prefork", f"{kind}_each"))
            figures.append(rate(f"{name}_rate", f"{what}: drain", "prefork", f"{kind}_rate"))
    return [
        *figures,
        Figure(name="talk_rate", section="spoken", what="jobs that write ten lines each", unit="/s"),
        Figure(name="talk_lines", section="spoken", what="lines that they write", unit="/s"),
        Figure(name="talk_ratio", section="spoken", what="their speed", unit="of silent"),
        Figure(name="flood", section="spoken", what=f"a command that writes {size.flood_mb} MB", unit="MB/s"),
        Figure(name="flood_rss", section="spoken", what="memory of the worker after it", unit="MB", grows=False),
        Figure(name="hand_flood", section="spoken", what="the same command by hand", unit="MB/s", ours="flood"),
    ]


def _idle() -> list[Figure]:
    def cost(name: str, what: str, unit: str) -> Figure:
        return Figure(name=name, section="idle", what=what, unit=unit, grows=False)

    return [
        cost("rss_supervisor", "memory of an idle supervisor", "MB"),
        cost("rss_child", "memory of its idle child", "MB"),
        cost("rss_switch", "memory of its dead man's switch", "MB"),
        cost("rss", "memory of an idle worker (all)", "MB"),
        cost("pss", "the same, shared pages counted once", "MB"),
        cost("rss_after", "memory of a worker after a drain", "MB"),
        cost("idle_cpu", "processor of an idle worker", "% of a core"),
        cost("idle_server_cpu", "processor of the server meanwhile", "% of a core"),
        cost("idle_queries", "queries of an idle worker", "/s"),
    ]


def _crowd(size: Size) -> list[Figure]:
    def cost(name: str, what: str, unit: str) -> Figure:
        return Figure(name=name, section=name.split("_")[0], what=what, unit=unit, grows=False)

    many, workers = f"{size.crowd:,} running at once", f"{size.fleet:,} workers"
    figures = [
        Figure(name="crowd_start", section="crowd", what=f"{many}: enqueued and started", unit="/s"),
        cost("crowd_rss", f"{many}: memory of the worker", "MB"),
        cost("crowd_each", f"{many}: memory of each", "kB"),
        cost("crowd_cpu", f"{many}: processor of the worker meanwhile", "% of a core"),
        cost("crowd_server_cpu", f"{many}: processor of the server meanwhile", "% of a core"),
        cost("crowd_beat", f"{many}: oldest heartbeat that was seen", "ms"),
        cost("crowd_late_p50", f"{many}: wakes later than wanted, p50", "ms"),
        cost("crowd_late_p99", f"{many}: wakes later than wanted, p99", "ms"),
    ]
    for name, what in (("beats", "heartbeats"), ("idle", "heartbeats and looking for work")):
        figures += [
            cost(f"fleet_{name}_cpu", f"{workers}, {what}: processor of the clients", "% of a core"),
            cost(f"fleet_{name}_server_cpu", f"{workers}, {what}: processor of the server", "% of a core"),
            cost(f"fleet_{name}_statements", f"{workers}, {what}: statements", "/s"),
            cost(f"fleet_{name}_oldest", f"{workers}, {what}: oldest heartbeat", "ms"),
        ]
    return figures


def _timetable(size: Size) -> list[Figure]:
    def delay(name: str, what: str) -> Figure:
        return Figure(name=name, section=name.split("_")[0], what=what, unit="ms", grows=False)

    def cost(name: str, what: str, unit: str) -> Figure:
        return Figure(name=name, section="steady", what=f"{many}: {what}", unit=unit, grows=False)

    many = f"{size.schedules:,} schedules"
    return [
        Figure(name="next_alike", section="next", what="next ticks, expressions that are alike", unit="/s"),
        Figure(name="next_fresh", section="next", what="next ticks, each for the first time", unit="/s"),
        Figure(name="steady_fill", section="steady", what=f"{many}: added", unit="/s"),
        cost("steady_start", "start of a worker", "s"),
        cost("steady_rss", "memory of the worker", "MB"),
        cost("steady_cpu", "processor of the worker", "% of a core"),
        cost("steady_server_cpu", "processor of the server", "% of a core"),
        Figure(name="steady_rate", section="steady", what=f"{many}: ticks", unit="/s"),
        delay("steady_late_p50", f"{many}: decided after their tick, p50"),
        delay("steady_late_p99", f"{many}: decided after their tick, p99"),
        Figure(name="herd", section="herd", what=f"{many}, all due at once: ticks until done", unit="/s"),
        delay("herd_others_p50", "others meanwhile: decided after their tick, p50"),
        delay("herd_others_p99", "others meanwhile: decided after their tick, p99"),
        *(
            Figure(
                name=f"{module}_herd", section="timers", what=f"{who}, in memory: due at once", unit="/s", ours="herd"
            )
            for module, who in (("apscheduler", "APScheduler"), ("celery", "Celery beat"))
        ),
    ]


def _workflows(size: Size) -> list[Figure]:
    def rate(name: str, what: str) -> Figure:
        return Figure(name=name, section="workflows", what=what, unit="/s")

    def cost(name: str, what: str, unit: str) -> Figure:
        return Figure(name=name, section="workflows", what=what, unit=unit, grows=False)

    wide, beside = f"a map of {size.wide:,}", f"started beside a map of {size.wide:,} that expands"
    return [
        cost("chain_step", f"a chain of {size.chain:,} steps: each", "ms"),
        rate("fan_rate", f"a list, a map of {size.fan:,} and a reduce: steps"),
        cost("fan_in", "… from the last item's end to the reduce's start", "ms"),
        rate("many_rate", f"{size.runs:,} runs of three steps at once: steps"),
        cost("flow_rss", "memory of the worker after them", "MB"),
        rate("wide_rate", f"{wide}: steps"),
        cost("wide_stored", f"{wide}: on the disk, for each item", "B"),
        cost("wide_transactions", f"{wide}: transactions that write, for 1,000 items", ""),
        cost("wide_written", f"{wide}: write-ahead log, for each item", "B"),
        cost("wide_longest", f"{wide}: longest transaction that was seen", "ms"),
        cost("wide_peak", f"{wide}: most memory of the worker", "MB"),
        Figure(name="beside_arrivals", section="workflows", what=f"{beside}: executions", unit=""),
        cost("beside_p50", f"{beside}, p50", "ms"),
        cost("beside_p99", f"{beside}, p99", "ms"),
        cost("beside_max", f"{beside}, slowest", "ms"),
        *(figure for peer in ORCHESTRATORS for figure in _orchestrator(peer, size)),
    ]


def _orchestrator(peer: Orchestrator, size: Size) -> list[Figure]:
    def figure(name: str, what: str, unit: str, ours: str) -> Figure:
        return Figure(
            name=f"{peer.slug}_{name}",
            section="canvas",
            what=f"{peer.name}: {what}",
            unit=unit,
            grows=unit == "/s",
            ours=ours,
        )

    return [
        figure("chain", f"a chain of {peer.part(size.chain):,} steps: each", "ms", "chain_step"),
        figure("fan", f"a map of {peer.part(size.fan):,} and a reduce: steps", "/s", "fan_rate"),
        figure("many", f"{peer.part(size.runs):,} runs of three steps at once: steps", "/s", "many_rate"),
        figure("rss", peer.memory_of, "MB", "flow_rss"),
    ]


def _sleepers(size: Size) -> list[Figure]:
    def figure(name: str, what: str, unit: str) -> Figure:
        return Figure(name=name, section="sleepers", what=what, unit=unit, grows=unit == "/s")

    return [
        figure("sleep_rate", f"{size.sleepers:,} steps that sleep: begun", "/s"),
        figure("sleep_stored", f"{size.sleepers:,} steps that sleep: stored, each", "bytes"),
        figure("sleep_rss", f"{size.sleepers:,} steps that sleep: memory of the worker", "MB"),
        figure("sleep_cpu", f"{size.sleepers:,} steps that sleep: processor time of the worker", "%"),
        figure("sleep_server_cpu", f"{size.sleepers:,} steps that sleep: processor time of the server", "%"),
    ]


def _events(size: Size) -> list[Figure]:
    def figure(name: str, what: str, unit: str) -> Figure:
        return Figure(name=name, section="events", what=what, unit=unit, grows=unit == "/s")

    return [
        figure("emit_none", "emits from 32 callers, without subscribers", "/s"),
        figure("emit_one", "emits from 32 callers, with one subscriber", "/s"),
        figure("emit_many", f"an emit with {size.subscribers:,} subscribers, all started", "ms"),
        figure("wake", f"one event wakes {size.waits:,} runs: each", "/s"),
        figure("folder_list", f"a folder with {size.files:,} files: to list it", "ms"),
        figure("folder_emit", f"a folder with {size.files:,} files: events", "/s"),
    ]


def _http(size: Size) -> list[Figure]:
    def figure(name: str, what: str, unit: str) -> Figure:
        return Figure(name=name, section="http", what=what, unit=unit, grows=unit in ("/s", "% of it"))

    lines, flood = f"{size.bulk[1]:,} lines in one request", f"while {size.flood:,} are enqueued"
    streams, waits = f"{size.streams:,} open streams", f"{size.callers:,} requests that wait"
    return [
        figure("http_single", "enqueues over 64 connections, one by one", "/s"),
        figure("http_bare", "a bare handler with group commit, the same calls", "/s"),
        figure("http_share", "enqueues over HTTP, of the bare handler", "% of it"),
        figure("http_cpu", "one enqueue: processor of Rota's server", "µs"),
        figure("http_bare_cpu", "one enqueue: processor of the bare handler", "µs"),
        figure("http_client_cpu", "one enqueue: processor of the client", "µs"),
        figure("http_server_cpu", "one enqueue: processor of the database server", "µs"),
        figure("http_lines", f"{lines}: each", "/s"),
        figure("http_lines_cpu", f"{lines}: processor of Rota's server for each", "µs"),
        figure("http_lines_first", f"{lines}: first answer", "ms"),
        figure("http_lines_memory", f"{lines}: memory that the server grows by", "MB"),
        figure("http_flood", f"{flood} as lines: each", "/s"),
        figure("http_list_p99", f"{flood}: a list of 50, p99", "ms"),
        figure("http_get_p99", f"{flood}: one execution, p99", "ms"),
        figure("http_counts_p99", f"{flood}: counts, p99", "ms"),
        figure("http_streams_cpu", f"{streams}: processor of Rota's server", "% of a core"),
        figure("http_streams_statements", f"{streams}: statements", "per s"),
        figure("http_waits_first", f"{waits}: statements until they wait", "each"),
        figure("http_waits_cpu", f"{waits}: processor of Rota's server", "% of a core"),
        figure("http_waits_statements", f"{waits}: statements", "per s"),
        figure("http_waits_answered", f"{waits}: a worker runs them; all answered after", "s"),
    ]


def _dashboard(size: Size) -> list[Figure]:
    def figure(name: str, what: str, unit: str) -> Figure:
        return Figure(name=name, section="dashboard", what=what, unit=unit, grows=unit != "ms")

    history = f"with {size.pages:,} finished"
    return [
        figure("page_executions_p50", f"a page of executions {history}, p50", "ms"),
        figure("page_executions_p99", f"a page of executions {history}, p99", "ms"),
        figure("page_overview_p50", f"the overview {history}, p50", "ms"),
        figure("page_overview_p99", f"the overview {history}, p99", "ms"),
        figure("page_counts_p50", f"counts by state {history}, p50", "ms"),
        figure("page_counts_p99", f"counts by state {history}, p99", "ms"),
        figure("open_none", "drain beside a server without readers", "/s"),
        figure("open_some", "drain beside ten open Overviews", "/s"),
        figure("open_share", "drain beside ten open Overviews, of that without", "% of it"),
    ]


def _growth(size: Size) -> list[Figure]:
    def growth(name: str, what: str) -> Figure:
        return Figure(name=name, section="growth", what=what, unit="of empty")

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


_COMPARED = (
    ("drain", "drain, the peers' task", "/s"),
    ("bulk", "bulk enqueue", "/s"),
    ("enqueue", "single enqueue, one by one", "/s"),
    ("p50", "idle pick-up p50", "ms"),
    ("p99", "idle pick-up p99", "ms"),
    ("rss", "memory of the workers", "MB"),
)


def _rota() -> list[Figure]:
    return [
        Figure(name=f"rota_{name}", section="peers", what=f"Rota: {what}", unit=unit, grows=unit == "/s")
        for name, what, unit in _COMPARED
    ]


def _peer(peer: Peer, kind: str) -> list[Figure]:
    return [
        Figure(
            name=f"{peer.slug}_{name}",
            section=peer.section(kind),
            what=f"{peer.name}: {what}",
            unit=unit,
            grows=unit == "/s",
            ours=f"rota_{name}",
            times=TIMES[kind].get(f"{peer.slug}_{name}"),
        )
        for name, what, unit in _COMPARED
    ]
