"""Hooks: the addresses at which other systems post webhooks, each of which becomes an event."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from rota.api import listing, revision
from rota.api.answer import Answer, created, no_content, shown
from rota.api.call import Call
from rota.api.dry_run import Dry, would
from rota.api.named import NamedPage
from rota.api.problem import Problem
from rota.api.route import BASE, NoQuery, route
from rota.domain import duration
from rota.domain import hook as rules
from rota.domain.access import Scope
from rota.domain.hook import Dedupe, Rules, Scheme
from rota.ops import hooks as ops
from rota.ops.hooks import HookToStore
from rota.store import hook_reader
from rota.store.hook_reader import HookRow
from rota.store.port import Tx
from rota.views import hook as views
from rota.views.hook import Hook, NewHook

DEFAULT_OVERLAP = "1h"

Duration = Annotated[float | str, msgspec.Meta(description="A duration: seconds, or text such as 1h.")]

Secret = Annotated[str, msgspec.Meta(description="The secret that the sender has chosen; without it one is made.")]


class HookIn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A new hook. `event` is the name of the events that it emits. The headers are for the scheme `hmac`."""

    name: str
    event: str
    scheme: Scheme
    dedupe: Dedupe | None = None
    signature_header: str | None = None
    timestamp_header: str | None = None
    description: str = ""
    secret: Secret | None = None
    """The secret that the sender has chosen; without it one is made."""


class HookChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Members that are named are replaced, and null puts the default back. The scheme of a hook does not change."""

    name: str | msgspec.UnsetType = msgspec.UNSET
    event: str | msgspec.UnsetType = msgspec.UNSET
    dedupe: Dedupe | msgspec.UnsetType | None = msgspec.UNSET
    signature_header: str | msgspec.UnsetType | None = msgspec.UNSET
    timestamp_header: str | msgspec.UnsetType | None = msgspec.UNSET
    description: str | msgspec.UnsetType | None = msgspec.UNSET


class RotateHook(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """`overlap` is how long the old secret stays valid beside the new one."""

    overlap: Duration = DEFAULT_OVERLAP
    """How long the old secret stays valid, in seconds or as text."""
    secret: Secret | None = None
    """The new secret that the sender has chosen; without it one is made."""


_NEW = {"name": "github-pushes", "event": "github.push", "scheme": "github"}


@route("GET /hooks", Scope.READ, answer=listing.of(Hook))
async def hooks(call: Call, query: NamedPage) -> Answer:
    """The hooks of the namespace, by name."""
    found = await call.read(views.hooks, call.namespace)
    return listing.of_all(call, query, Hook, found, lambda one: [one.name])


@route("POST /hooks", Scope.DEFINE, answer=NewHook, status=201, example=_NEW, codes=("name_taken", "bad_definition"))
async def create(call: Call, query: Dry, body: HookIn) -> Answer:
    """Makes a hook. Its secret is in this answer and nowhere else."""
    wanted = HookToStore(
        name=body.name,
        event=body.event,
        rules=Rules(body.scheme, body.dedupe, body.signature_header, body.timestamp_header),
        description=body.description,
    )
    clock = call.services.clock
    secret = body.secret or rules.written_secret(body.scheme, clock.secret_bits(rules.SECRET_BITS))
    key = rules.written_key(clock.secret_bits(rules.KEY_BITS))

    def show(tx: Tx, row: HookRow) -> Answer:
        if call.is_dry_run:
            return would(views.hook(row, tx.now))
        shape = views.new_hook(row, tx.now, secret)
        return created(shape, f"{BASE}/hooks/{row.id}", headers=revision.header(row.revision), is_secret=True)

    return await call.act(show, ops.make, call.namespace, call.services.ids.new(), key, secret, wanted, call.actor)


@route("GET /hooks/{hook}", Scope.READ, answer=Hook)
async def hook(call: Call, query: NoQuery) -> Answer:
    """One hook, without its secret."""
    row = await call.read(hook_reader.hook, call.namespace, call.path["hook"])
    same = revision.not_modified(call.headers, row.revision)
    return same or shown(views.hook(row, call.services.clock.now()), headers=revision.header(row.revision))


@route(
    "PATCH /hooks/{hook}",
    Scope.DEFINE,
    answer=Hook,
    example={"event": "github.release"},
    codes=("name_taken", "bad_definition", "precondition_failed"),
)
async def change(call: Call, query: Dry, body: HookChange) -> Answer:
    """Changes members of a hook. Its address and its secret stay."""
    conditions = revision.conditions(call.headers)

    def apply(tx: Tx) -> HookRow:
        row = hook_reader.locked(tx, call.namespace, call.path["hook"])
        conditions.check(row.revision)
        return ops.change(tx, call.namespace, row.id, _changed(ops.of_row(row), body), call.actor)

    return await call.act(lambda tx, row: _shown(call, row, tx.now), apply)


@route("DELETE /hooks/{hook}", Scope.DEFINE, status=204, codes=("precondition_failed",))
async def delete(call: Call, query: Dry) -> Answer:
    """Deletes a hook. Its address answers 404 at once."""
    conditions = revision.conditions(call.headers)

    def apply(tx: Tx) -> Hook:
        row = hook_reader.locked(tx, call.namespace, call.path["hook"])
        conditions.check(row.revision)
        ops.delete(tx, call.namespace, row.id, call.actor)
        return views.hook(row, tx.now)

    return await call.act(lambda tx, gone: would(gone) if call.is_dry_run else no_content(), apply)


@route("POST /hooks/{hook}/rotate", Scope.DEFINE, answer=NewHook, example={"overlap": "1h"}, codes=("bad_definition",))
async def rotate(call: Call, query: Dry, body: RotateHook | None) -> Answer:
    """Gives a hook a new secret; the old one stays valid for `overlap`."""
    wanted = body or RotateHook()
    overlap_s = duration.seconds(wanted.overlap, "overlap")
    bits = call.services.clock.secret_bits(rules.SECRET_BITS)
    secrets: list[str] = []

    def apply(tx: Tx) -> HookRow:
        row = hook_reader.locked(tx, call.namespace, call.path["hook"])
        secrets[:] = [wanted.secret or rules.written_secret(row.scheme, bits)]
        return ops.rotate(tx, call.namespace, row.id, secrets[0], overlap_s, call.actor)

    def show(tx: Tx, row: HookRow) -> Answer:
        if call.is_dry_run:
            return would(views.hook(row, tx.now))
        shape = views.new_hook(row, tx.now, secrets[0])
        return shown(shape, headers=revision.header(row.revision), is_secret=True)

    return await call.act(show, apply)


def _changed(now: HookToStore, body: HookChange) -> HookToStore:
    named: dict[str, Any] = {
        name: value for name, value in msgspec.structs.asdict(body).items() if value is not msgspec.UNSET
    }
    if named.get("name", "") is None or named.get("event", "") is None:
        raise Problem("bad_field", "name and event have no default: null is not possible")
    description = named.pop("description", now.description) or ""
    plain = {name: named.pop(name) for name in ("name", "event") if name in named}
    changed = msgspec.structs.replace(now.rules, **named)
    return msgspec.structs.replace(now, **plain, rules=changed, description=description)


def _shown(call: Call, row: HookRow, now: int) -> Answer:
    shape = views.hook(row, now)
    return would(shape) if call.is_dry_run else shown(shape, headers=revision.header(row.revision))
