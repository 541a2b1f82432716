"""A deploy: one set of declarations of an app, and the rule that says which deploy is in force.

A set is everything that the code of an app declares: its jobs with their definitions, its queues, its schedules and
its sources of events. Two workers with the same set have the same deploy, whenever they start. During a roll-out
workers of several deploys live side by side, and exactly one of the deploys is in force: the database has its
schedules, its queue settings and its job versions.

Deploys are ordered by precedence. A set that is new to the database gets the highest; an operator can give it to
another deploy. A worker that restarts keeps the precedence that its set has, so an old worker never undoes a newer
deploy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from rota.domain.job import Definition, Queue, content
from rota.domain.job import digest as version_of
from rota.domain.schedule import Spec
from rota.domain.source import Source, name_of

GRACE_LEASES = 6
"""How many leases a deploy stays in force without a live worker, so that a restart does not remove its schedules."""


class Declared(msgspec.Struct, frozen=True, kw_only=True):
    """A set of declarations. Jobs are named with the digests of their versions."""

    jobs: dict[str, str]
    queues: list[Queue]
    schedules: dict[str, Spec]
    sources: list[Source] = []
    """Sorted by name."""


decode = msgspec.json.Decoder(Declared).decode


class Deploy(msgspec.Struct, frozen=True, array_like=True):
    """A deploy as the rule sees it."""

    number: int
    precedence: int
    workers: int
    """How many live workers declare it."""
    left_at: int | None
    """When its last worker stopped; None if none has stopped yet."""


def declared(
    definitions: Sequence[Definition],
    queues: Sequence[Queue],
    schedules: Mapping[str, Spec],
    sources: Iterable[Source] = (),
) -> Declared:
    return Declared(
        jobs={definition.name: version_of(content(definition)) for definition in definitions},
        queues=sorted(queues, key=lambda queue: queue.name),
        schedules=dict(schedules),
        sources=sorted(sources, key=name_of),
    )


def encode(found: Declared) -> str:
    return msgspec.json.encode(found, order="sorted").decode()


def digest(text: str) -> str:
    """The identity of a deploy."""
    return hashlib.sha256(text.encode()).hexdigest()


def in_force(deploys: Sequence[Deploy], applied: int | None, now: int, grace: int) -> int | None:
    """The number of the deploy that should be in force. `applied` is the deploy that is in force now.

    The live deploy with the highest precedence wins at once. The applied one still counts as live for `grace` after its
    last worker has stopped, and stays in force for as long as no deploy has a live worker.
    """
    if not any(deploy.workers for deploy in deploys):
        return applied
    # `abs`, because the clock may have been set back since.
    candidates = [
        deploy
        for deploy in deploys
        if deploy.workers
        or (deploy.number == applied and deploy.left_at is not None and abs(now - deploy.left_at) < grace)
    ]
    return max(candidates, key=lambda deploy: deploy.precedence).number
