"""Who may do what: scopes, the roles that bundle them, and what a caller of the HTTP API was granted."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec

ALL = "*"
"""All namespaces."""


class Scope(StrEnum):
    """A kind of permission. Each route of the API needs one."""

    READ = "read"
    ENQUEUE = "enqueue"
    OPERATE = "operate"
    DEFINE = "define"
    DEFINE_HTTP = "define:http"
    DEFINE_COMMAND = "define:command"
    ADMIN = "admin"
    WORK = "work"


class Role(StrEnum):
    """A usual bundle of scopes."""

    VIEWER = "viewer"
    PRODUCER = "producer"
    OPERATOR = "operator"
    AUTHOR = "author"
    ADMIN = "admin"
    WORKER = "worker"


_OPERATOR = (Scope.READ, Scope.ENQUEUE, Scope.OPERATE)
_AUTHOR = (*_OPERATOR, Scope.DEFINE, Scope.DEFINE_HTTP)
SCOPES: dict[Role, tuple[Scope, ...]] = {
    Role.VIEWER: (Scope.READ,),
    Role.PRODUCER: (Scope.ENQUEUE,),
    Role.OPERATOR: _OPERATOR,
    Role.AUTHOR: _AUTHOR,
    Role.ADMIN: (*_AUTHOR, Scope.DEFINE_COMMAND, Scope.ADMIN),
    Role.WORKER: (Scope.WORK,),
}


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """The rights of one caller. `queues` and `jobs` limit what it may enqueue; None is all of them."""

    actor: str
    scopes: frozenset[Scope]
    namespaces: tuple[str, ...] = (ALL,)
    role: Role | None = None
    groups: tuple[str, ...] = ()
    queues: tuple[str, ...] | None = None
    jobs: tuple[str, ...] | None = None
    token_id: str | None = None
    expires_at: int | None = None

    def has(self, *scopes: Scope) -> bool:
        return all(scope in self.scopes for scope in scopes)

    def reaches(self, namespace: str) -> bool:
        return ALL in self.namespaces or namespace in self.namespaces

    @property
    def is_of_all(self) -> bool:
        """Whether it is an administrator of all namespaces."""
        return ALL in self.namespaces and Scope.ADMIN in self.scopes

    def first_namespace(self, default: str) -> str:
        """The namespace of a caller that does not name one."""
        return default if ALL in self.namespaces else self.namespaces[0]


LOCAL = Grant(actor="local", scopes=frozenset(Scope) - {Scope.WORK}, role=Role.ADMIN)
"""The caller of a server without tokens, which listens only on this machine."""


def exceeds(wanted: Grant, own: Grant) -> str | None:
    """What a caller with `own` rights may not grant to another; None if it may grant all of it."""
    if missing := sorted(wanted.scopes - own.scopes - ({Scope.WORK} if Scope.ADMIN in own.scopes else set())):
        return f"the scope {missing[0]}"
    if foreign := [name for name in wanted.namespaces if not _covers(own.namespaces, name)]:
        return "all namespaces" if foreign[0] == ALL else f"the namespace {foreign[0]}"
    for what, given, ours in (("queues", wanted.queues, own.queues), ("jobs", wanted.jobs, own.jobs)):
        if ours is not None and (given is None or set(given) - set(ours)):
            return f"{what} beyond {', '.join(ours)}"
    return None


def _covers(own: Iterable[str], name: str) -> bool:
    return ALL in own or name in own
