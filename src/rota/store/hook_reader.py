"""Reads inbound webhooks. The secrets are read only to check a request."""

from __future__ import annotations

import msgspec

from rota.domain.errors import UsageError
from rota.domain.hook import Dedupe, Rules, Scheme
from rota.ids import FIRST_ID, is_id
from rota.store.port import Tx, View


class HookRow(msgspec.Struct, frozen=True, array_like=True):
    """A hook without its secrets. `old_until` is when the secret before the last rotation ends."""

    id: str
    namespace: str
    name: str
    key: str
    event: str
    scheme: Scheme
    dedupe_header: str | None
    dedupe_pointer: str | None
    signature_header: str | None
    timestamp_header: str | None
    description: str
    revision: int
    created_at: int
    created_by: str
    updated_at: int
    old_until: int | None

    @property
    def rules(self) -> Rules:
        has_dedupe = self.dedupe_header is not None or self.dedupe_pointer is not None
        dedupe = Dedupe(header=self.dedupe_header, pointer=self.dedupe_pointer) if has_dedupe else None
        return Rules(self.scheme, dedupe, self.signature_header, self.timestamp_header)


class SecretRow(HookRow, frozen=True, array_like=True):
    """A hook with its secrets."""

    secret: str
    old_secret: str | None

    def secrets(self, now: int) -> list[str]:
        """The secrets that are valid now."""
        is_overlap = self.old_secret is not None and self.old_until is not None and self.old_until > now
        return [self.secret, *([self.old_secret] if is_overlap and self.old_secret is not None else [])]


class UnknownHook(UsageError):
    code = "not_found"


def hooks(view: View, namespace: str) -> list[HookRow]:
    """By name."""
    return view.records("hooks", HookRow, namespace=namespace)


def hook(view: View, namespace: str, id_or_name: str) -> HookRow:
    """Names begin with a letter and ids with a digit, so that none is both."""
    found = view.records("hook", HookRow, namespace=namespace, **_named(id_or_name))
    if not found:
        raise UnknownHook(f"there is no hook {id_or_name!r}")
    return found[0]


def locked(tx: Tx, namespace: str, id_or_name: str) -> HookRow:
    """`hook`, for a change: another transaction that changes the same hook waits."""
    tx.one("lock_hook", namespace=namespace, **_named(id_or_name))
    return hook(tx, namespace, id_or_name)


def _named(id_or_name: str) -> dict[str, str]:
    return {"id": id_or_name if is_id(id_or_name) else FIRST_ID, "name": id_or_name}


def of_key(view: View, key: str) -> SecretRow | None:
    """The hook with this address, in any namespace."""
    return next(iter(view.records("hook_of_key", SecretRow, key=key)), None)
