"""dramatiq on Redis or RabbitMQ: two processes of eight threads."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import dramatiq  # type: ignore[import-not-found]
from dramatiq.brokers.rabbitmq import RabbitmqBroker  # type: ignore[import-not-found]
from dramatiq.brokers.redis import RedisBroker  # type: ignore[import-not-found]

from benchmarks import probe

COMMAND = ["dramatiq", "benchmarks.peers.dramatiq", "-p", "2", "-t", "8"]
SHARE = 0.1
URL = os.environ["PEER_URL"]

broker: Any = RedisBroker(url=URL) if URL.startswith("redis:") else RabbitmqBroker(url=URL)
dramatiq.set_broker(broker)


@dramatiq.actor
def hit(number: int, since: float) -> None:
    probe.current().note(number, since)


def enqueue(calls: Iterable[tuple[int, float]]) -> None:
    for call in calls:
        hit.send(*call)
