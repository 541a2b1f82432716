"""Sources of events that supervisors read: watched folders and outbox tables."""

from __future__ import annotations

import re

import msgspec

from rota.domain import event
from rota.domain.duration import Duration, positive_seconds, seconds
from rota.domain.errors import DefinitionError

_PART = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


class Folder(msgspec.Struct, frozen=True, tag="folder"):
    """A folder. Each new or changed file in it becomes an event."""

    path: str
    event: str
    """The name of the events."""
    pattern: str = "*"
    settle_s: float = 5.0
    """How long a file must stay unchanged before its event is emitted."""
    every_s: float = 2.0
    is_recursive: bool = False


class Outbox(msgspec.Struct, frozen=True, tag="outbox"):
    """A table of the user. Each row in it becomes an event."""

    table: str
    every_s: float = 1.0


Source = Folder | Outbox


def folder(path: str, name: str, pattern: str, settle: Duration, every: Duration, *, is_recursive: bool) -> Folder:
    if not path.startswith("/"):
        raise DefinitionError(
            f"watch: the folder must be an absolute path, because each worker has its own current folder, not {path!r}"
        )
    if not isinstance(pattern, str) or not pattern or "/" in pattern:
        raise DefinitionError(f"watch: pattern must match the names of files, such as '*.csv', not {pattern!r}")
    settle_s, every_s = seconds(settle, "settle"), positive_seconds(every, "every")
    return Folder(path.rstrip("/") or "/", event.check_name(name), pattern, settle_s, every_s, is_recursive)


def outbox(table: str, every: Duration) -> Outbox:
    parts = table.split(".") if isinstance(table, str) else []
    if len(parts) not in (1, 2) or not all(_PART.fullmatch(part) for part in parts):
        raise DefinitionError(
            f"outbox: the table must be a name such as 'outbox' or 'shop.outbox', not {str(table)[:64]!r}"
        )
    return Outbox(table, positive_seconds(every, "every"))


def name_of(source: Source) -> str:
    """The name of a source in logs. It is unique in an app."""
    return f"{source.path}/{source.pattern}" if isinstance(source, Folder) else source.table
