"""Inbound webhooks: make, change, rotate, delete; each change has a row in the audit trail, without the secret."""

from __future__ import annotations

from typing import Any

import msgspec

from rota.domain import event, hook, names
from rota.domain.errors import DefinitionError, NameTaken
from rota.domain.hook import Rules
from rota.domain.instant import MICROSECONDS
from rota.ids import is_id
from rota.ops.audit import audit
from rota.store import hook_reader
from rota.store.hook_reader import HookRow
from rota.store.port import Tx

MOST_DESCRIPTION = 1000


class HookToStore(msgspec.Struct, frozen=True, kw_only=True):
    """The definition of a hook that a caller wants to create, or to give to an existing hook."""

    name: str
    event: str
    rules: Rules
    description: str = ""


def make(tx: Tx, namespace: str, id: str, key: str, secret: str, wanted: HookToStore, actor: str) -> HookRow:
    """`secret` is the text that the sender has; `key` the random part of the address."""
    wanted = _checked(wanted)
    scheme = wanted.rules.scheme
    stored = hook.stored_secret(scheme, hook.check_secret(scheme, secret))
    tx.run("add_namespace", namespace=namespace)
    about = {"id": id, "namespace": namespace, "key": key, "scheme": scheme.value, "secret": stored}
    if not tx.changed("add_hook", **about, **_columns(wanted), actor=str(actor)):
        raise _taken(wanted.name)
    audit(tx, namespace, actor, "hook.create", wanted.name, after=_shown(wanted))
    return hook_reader.hook(tx, namespace, id)


def change(tx: Tx, namespace: str, id: str, wanted: HookToStore, actor: str) -> HookRow:
    """The scheme cannot change, because a secret is of one scheme."""
    found = hook_reader.locked(tx, namespace, id)
    wanted, before = _checked(wanted), of_row(found)
    if wanted == before:
        return found
    if wanted.name != found.name and wanted.name in {one.name for one in hook_reader.hooks(tx, namespace)}:
        raise _taken(wanted.name)
    tx.run("change_hook", namespace=namespace, id=found.id, **_columns(wanted))
    audit(tx, namespace, actor, "hook.change", found.name, _shown(before), _shown(wanted))
    return hook_reader.hook(tx, namespace, found.id)


def rotate(tx: Tx, namespace: str, id: str, secret: str, overlap_s: float, actor: str) -> HookRow:
    """Gives a hook a new secret; the old one is valid for `overlap_s` more."""
    found = hook_reader.locked(tx, namespace, id)
    stored = hook.stored_secret(found.scheme, hook.check_secret(found.scheme, secret))
    until = tx.now + round(overlap_s * MICROSECONDS)
    tx.run("rotate_hook", namespace=namespace, id=found.id, secret=stored, old_until=until)
    audit(tx, namespace, actor, "hook.rotate", found.name, after={"overlap": overlap_s})
    return hook_reader.hook(tx, namespace, found.id)


def delete(tx: Tx, namespace: str, id: str, actor: str) -> None:
    """The address is gone at once."""
    found = hook_reader.locked(tx, namespace, id)
    tx.run("drop_hook", namespace=namespace, id=found.id)
    audit(tx, namespace, actor, "hook.delete", found.name, before=_shown(of_row(found)))


def of_row(row: HookRow) -> HookToStore:
    return HookToStore(name=row.name, event=row.event, rules=row.rules, description=row.description)


def _checked(wanted: HookToStore) -> HookToStore:
    names.check(wanted.name, "a hook's name")
    if is_id(wanted.name.lower()):
        raise DefinitionError("a hook's name cannot have the form of an id")
    event.check_name(wanted.event)
    if len(wanted.description) > MOST_DESCRIPTION or "\x00" in wanted.description:
        raise DefinitionError(f"a description has at most {MOST_DESCRIPTION:,} characters, and no NUL")
    return msgspec.structs.replace(wanted, rules=hook.checked(wanted.rules))


def _columns(wanted: HookToStore) -> dict[str, Any]:
    dedupe = wanted.rules.dedupe
    return {
        "name": wanted.name,
        "event": wanted.event,
        "dedupe_header": dedupe.header if dedupe else None,
        "dedupe_pointer": dedupe.pointer if dedupe else None,
        "signature_header": wanted.rules.signature_header,
        "timestamp_header": wanted.rules.timestamp_header,
        "description": wanted.description,
    }


def _shown(wanted: HookToStore) -> dict[str, Any]:
    return {"scheme": wanted.rules.scheme, **_columns(wanted)}


def _taken(name: str) -> NameTaken:
    return NameTaken(f"there is a hook {name!r}: choose another name, or change that one")
