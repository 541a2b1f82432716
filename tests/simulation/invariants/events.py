"""Events: each subscriber gets each event that it wants, once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from rota.domain import event_filter
from tests.simulation.flows import SUBSCRIBERS
from tests.simulation.history import History, Row


def an_event_starts_a_job_once(history: History) -> Iterator[str]:
    """Whatever `delivery` says: the executions themselves are counted."""
    started = Counter(
        (json.loads(row["event"])["id"], row["job"]) for row in history.tables["execution"] if row["event"]
    )
    for (event, job), count in started.items():
        if count > 1:
            yield f"event {event} has started {count} executions of {job}"


def every_job_gets_its_events(history: History) -> Iterator[str]:
    """The subscription of a job exists from the first deploy on, and counts from its own time."""
    if history.ended_at is None:
        return
    executions = {row["id"]: row for row in history.tables["execution"]}
    delivered = {(row["event"], row["subscriber"]): row["execution"] for row in history.tables["delivery"]}
    declared = [row for row in history.tables["subscription"] if row["execution"] is None]
    wanted = {
        (event["id"], one["subscriber"]): one
        for event in history.tables["event"]
        for one in declared
        if wants(one, event)
    }
    if {one["subscriber"].rpartition("/")[2] for one in declared} != set(SUBSCRIBERS):
        yield f"the subscriptions of jobs are {declared}"
    for event, subscriber in sorted(wanted.keys() - delivered.keys()):
        yield f"{subscriber} has not got the event {event}"
    for (event, subscriber), execution in delivered.items():
        job = subscriber.rpartition("/")[2]
        if job not in SUBSCRIBERS:
            continue  # A step that waited.
        if execution not in executions or executions[execution]["job"] != job:
            yield f"the delivery of event {event} to {subscriber} names {execution}, which is no execution of it"
        elif SUBSCRIBERS[job].debounce_s is None and json.loads(executions[execution]["event"])["id"] != event:
            yield f"the delivery of event {event} to {subscriber} names an execution of another event"


def no_event_is_half_delivered(history: History) -> Iterator[str]:
    if history.ended_at is not None:
        for row in history.tables["event_open"]:
            yield f"event {row['event']} is not delivered to the subscribers behind {row['after']!r}"


def a_key_names_one_event(history: History) -> Iterator[str]:
    keys = Counter((row["name"], row["key"]) for row in history.tables["event"] if row["key"] is not None)
    for key, count in keys.items():
        if count > 1:
            yield f"the key {key} has {count} events"


def wants(one: Row, event: Row) -> bool:
    """Whether this subscription gets this event, by its columns."""
    if one["name"] != event["name"] or one["subject"] not in ("", event["subject"]):
        return False
    if event["emitted_at"] < one["since_at"]:
        return False
    if one["execution"] is not None and event["id"] in json.loads(one["target"] or "[]"):
        return False
    return one["filter"] is None or event_filter.matches(json.loads(one["filter"]), json.loads(event["payload"]))


INVARIANTS = (
    an_event_starts_a_job_once,
    every_job_gets_its_events,
    no_event_is_half_delivered,
    a_key_names_one_event,
)
