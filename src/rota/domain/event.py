"""An event: something that has happened. It has a name, to which jobs and steps subscribe, and a payload."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from rota.domain import names
from rota.domain.errors import DefinitionError
from rota.domain.instant import moment

MOST_SUBJECT = 256


class EventInfo(msgspec.Struct, frozen=True):
    """The event that started an execution: `ctx.event`. Its payload is in the arguments of the execution."""

    id: str
    name: str
    subject: str | None
    emitted_at: datetime


decode_info = msgspec.json.Decoder(EventInfo).decode


def info(id: str, name: str, subject: str, emitted_at: int) -> str:
    """An `EventInfo` as JSON, for the execution that the event starts. An empty subject becomes None."""
    return msgspec.json.encode(EventInfo(id, name, subject or None, moment(emitted_at))).decode()


def check_name(name: Any) -> str:
    return names.check(name, "an event's name")


def check_subject(subject: Any) -> str:
    """The subject as the database stores it: an empty text for None."""
    if subject is None:
        return ""
    if isinstance(subject, str) and 0 < len(subject) <= MOST_SUBJECT and subject.isprintable():
        return subject
    raise DefinitionError(
        f"an event's subject must be 1 to {MOST_SUBJECT} printable characters, not {str(subject)[:64]!r}"
    )
