"""A server and workers as real processes, on a database with work in every state and five planted troubles.

The troubles: the queue `mail` is paused; `charge` fails since its new version; `render_video` needs a pool that no
worker has; ticks of `sync_stock` overlap; and a worker of the pool `images` has no disk space.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any, Self

import httpx

from tests.api.process import ServerProcess
from tests.browser import shop
from tests.support.waiting import eventually
from tests.support.workers import Worker

SHOP = "tests.browser.shop:app"
NOTE = "the provider is down"
FAILED = 25
PAUSED = 40


class Shop:
    """`url` is the address of the server; `ask` and `tell` are a client of its API."""

    def __init__(self, folder: Path, database: str) -> None:
        self.folder, self.database = folder, database
        self.server = ServerProcess(folder, database)
        self.workers: list[Worker] = []
        self._client = httpx.Client(base_url=f"{self.url}/api/v1", timeout=30)

    @property
    def url(self) -> str:
        return self.server.url

    def ask(self, path: str, **query: Any) -> Any:
        answer = self._client.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def tell(self, path: str, body: Any = None) -> Any:
        answer = self._client.post(path, json=body)
        assert answer.status_code < 300, answer.text
        return answer.json()

    def drop(self, path: str) -> None:
        answer = self._client.delete(path)
        assert answer.status_code < 300, answer.text

    def enqueue(self, job: str, **arguments: Any) -> str:
        return str(self.tell("/executions", {"job": job, "arguments": arguments})["executionId"])

    def status(self, execution: str) -> str:
        return str(self.ask(f"/executions/{execution}")["status"])

    def worker(self, *flags: str, release: int = 1, folder: Path | None = None) -> Worker:
        """A worker that has joined."""
        before = len(self._live())
        variables = {"SHOP_RELEASE": str(release), "SHOP_FOLDER": str(folder or self.folder)}
        worker = Worker(self.folder, self.database, flags, variables, SHOP)
        self.workers.append(worker)
        eventually(lambda: worker.check() and len(self._live()) > before, what="a worker that joins")
        return worker

    def _live(self) -> list[Any]:
        return list(self.ask("/workers")["items"])

    def close(self) -> None:
        self._client.close()
        for worker in self.workers:
            worker.close()
        self.server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def fill(site: Shop) -> None:
    """Work in every state, and the five troubles."""
    old = site.worker("--concurrency", "16")
    _work_well(site)
    _pause_mail(site)
    for number in range(12):
        site.enqueue("render_video", product=f"P-{5500 + number}")
    old.signal(signal.SIGTERM)
    old.wait()
    site.worker("--concurrency", "16", release=2)
    _fail(site)
    _fill_disk(site)


def _work_well(site: Shop) -> None:
    charged = [site.enqueue("charge", order=f"SO-{87000 + number}", cents=990 + number) for number in range(40)]
    for number in range(10):
        site.enqueue("send_email", to=f"user{number}@example.org")
    site.enqueue("many_lines", lines=2000)
    for number in range(3):
        site.tell("/events", {"name": "order.paid", "payload": {"id": f"A-{number}"}, "subject": f"A-{number}"})
    site.tell("/workflows/etl/trigger", {"arguments": {"day": "2026-11-16"}})
    site.tell("/workflows/release/trigger", {"arguments": {"version": "1.4"}})
    site.tell(f"/workflows/{shop.LONG_WORKFLOW}/trigger", {"arguments": {"version": "2026-11"}})
    eventually(lambda: all(site.status(id) == "success" for id in charged), what="charges that succeed")


def _pause_mail(site: Shop) -> None:
    site.tell("/queues/mail/pause", {"note": NOTE})
    for number in range(PAUSED):
        site.enqueue("send_email", to=f"late{number}@example.org", template="digest")


def _fail(site: Shop) -> None:
    site.enqueue("nightly_backup")
    site.enqueue(shop.LONG_NAME, note="3rd quarter")
    hostile = site.enqueue("import_catalog", file=shop.HOSTILE)
    failing = [site.enqueue("charge", order=f"SO-{88000 + number}", cents=4990) for number in range(FAILED)]
    eventually(lambda: all(site.status(id) == "failed" for id in [hostile, *failing]), what="charges that fail")
    site.tell("/executions", {"job": "send_email", "arguments": {"to": "ann@example.org"}, "delay": "6h"})


def _fill_disk(site: Shop) -> None:
    folder = site.folder / "images"
    folder.mkdir()
    site.worker("--pool", "images", "--concurrency", "2", folder=folder)
    (folder / "disk_full").touch()
    site.enqueue("resize_image", photo=99127)
    eventually(
        lambda: any(worker["trouble"] for worker in site.ask("/workers")["items"]),
        what="a worker that cannot start processes",
    )
