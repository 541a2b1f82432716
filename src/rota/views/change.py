"""The changes of a namespace, and who made them."""

from __future__ import annotations

from datetime import datetime

from rota.domain.change import Change as Found
from rota.domain.change import Kind
from rota.domain.instant import moment
from rota.store import change_reader
from rota.store.port import View
from rota.views.finding import Subject
from rota.views.shape import Shape


class Change(Shape, frozen=True):
    """A version, a pause, a drain, a worker that came or went, or another setting. `action` is of the audit trail."""

    change_id: str
    """The id of the change; the list is ordered by time."""
    at: datetime
    """When it was changed."""
    kind: Kind
    """What was changed."""
    action: str | None
    """The action in the audit trail; null if it has no entry there."""
    subject: Subject
    text: str
    """What was changed, in a sentence."""
    actor: str | None
    """The caller that made it; null if that is not known."""
    note: str | None
    """The reason that was given; null if there is none."""


def changes(view: View, namespace: str, low: int, high: int) -> list[Change]:
    """Oldest first."""
    return [_shown(one) for one in change_reader.changes(view, namespace, low, high)]


def _shown(one: Found) -> Change:
    about = one.subject
    subject = Subject(about.kind, about.id, about.name, about.app)
    return Change(one.id, moment(one.at), one.kind, one.action, subject, one.text, one.actor, one.note)
