"""Peers that run each task in a process: the same no-op, one after another and many at once."""

from __future__ import annotations

import contextlib

from benchmarks.errands import KINDS
from benchmarks.peers.brokers import broker, missing
from benchmarks.peers.catalogue import PREFORK
from benchmarks.peers.compare import Measurement
from benchmarks.sections import Samples
from benchmarks.site import Site
from benchmarks.sizes import Size
from benchmarks.steady import rate


def prefork(site: Site, size: Size) -> Samples:
    """With two processes each, on a server of the run's own."""
    for peer in PREFORK:
        if not missing(peer.broker):
            with site.new_folder("peer-") as folder, broker(peer, site, folder) as url:
                yield from Prefork(peer, site, size, folder, url).samples()


class Prefork(Measurement):
    """One peer on an empty broker."""

    def samples(self) -> Samples:
        yield from self._samples("process", "turns", "single")
        yield from self._samples("command", "command_turns", "commands")

    def _samples(self, kind: str, turns: str, many: str) -> Samples:
        """Tasks that wait for the worker first, as ours do; then, with the same worker, one by one."""
        slug, size = self._peer.slug, self._size
        count = max(1, round(min(KINDS[kind], 5 * self._about.share) * size.errands))
        before = self._seen.count()
        self._client(many, count)
        with contextlib.ExitStack() as stack:
            for _ in range(self._about.processes):
                stack.enter_context(self._worker())
            yield f"{slug}_{kind}_rate", rate(lambda: self._seen.count() - before, count, size.limit_s)
            yield f"{slug}_{kind}_each", self._client(turns, size.turns)
