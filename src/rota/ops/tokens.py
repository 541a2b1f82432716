"""Tokens and sessions of the HTTP API: make, rotate, revoke; each change has a row in the audit trail."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.domain import access, names
from rota.domain import token as tokens
from rota.domain.access import Grant
from rota.domain.errors import Conflict, DefinitionError, NameTaken
from rota.domain.instant import MICROSECONDS
from rota.ops.audit import audit
from rota.ops.quotas import check_quota
from rota.store import access_reader
from rota.store.access_reader import IDLE_S, LONGEST_S, TokenRow
from rota.store.port import Tx


class TokenToMake(msgspec.Struct, frozen=True, kw_only=True):
    """A token to be made. `grant.actor` is its name."""

    id: str
    text: str
    """The whole token, which is not stored."""
    grant: Grant
    expires_at: int | None


def make(tx: Tx, namespace: str, wanted: TokenToMake, own: Grant) -> TokenRow:
    """Refuses rights that the caller does not have itself."""
    grant = wanted.grant
    name = names.check(grant.actor, "a token's name")
    if beyond := access.exceeds(grant, own):
        raise ExceedsOwnRights(f"{own.actor} may not grant {beyond}, because it does not have that itself")
    if not grant.namespaces or not grant.scopes:
        raise DefinitionError("a token needs at least one namespace and one scope, or a role")
    if tx.one("token_named", namespace=namespace, name=name) is not None:
        raise NameTaken(f"there is a token {name!r}: revoke it first, or choose another name")
    tx.run("add_namespace", namespace=namespace)
    check_quota(tx, namespace, "max_tokens")
    tx.run(
        "add_token",
        id=wanted.id,
        namespace=namespace,
        name=name,
        role=grant.role,
        scopes=_json(sorted(grant.scopes)),
        namespaces=_json(grant.namespaces),
        groups=_json(grant.groups),
        only_queues=None if grant.queues is None else _json(grant.queues),
        only_jobs=None if grant.jobs is None else _json(grant.jobs),
        digest=tokens.digest(wanted.text),
        ending=wanted.text[-4:],
        actor=own.actor,
        expires_at=wanted.expires_at,
    )
    about = {"role": grant.role, "scopes": sorted(grant.scopes), "namespaces": list(grant.namespaces)}
    audit(tx, namespace, own.actor, "token.create", name, after=about)
    return known(tx, namespace, wanted.id)


def rotate(tx: Tx, namespace: str, id: str, text: str, overlap_s: float, actor: str) -> TokenRow:
    """Gives a token a new secret; the old one is valid for `overlap_s` more."""
    found = _live(tx, namespace, id)
    until = tx.now + round(overlap_s * MICROSECONDS)
    tx.run("rotate_token", namespace=namespace, id=id, old_until=until, digest=tokens.digest(text), ending=text[-4:])
    audit(tx, namespace, actor, "token.rotate", found.name, after={"overlap": overlap_s})
    return known(tx, namespace, id)


def change(tx: Tx, namespace: str, id: str, name: str, expires_at: int | None, actor: str) -> TokenRow:
    found = _live(tx, namespace, id)
    names.check(name, "a token's name")
    if name != found.name and tx.one("token_named", namespace=namespace, name=name) is not None:
        raise NameTaken(f"there is a token {name!r}: choose another name")
    tx.run("change_token", namespace=namespace, id=id, name=name, expires_at=expires_at)
    before = {"name": found.name, "expires_at": found.expires_at}
    audit(tx, namespace, actor, "token.change", found.name, before, {"name": name, "expires_at": expires_at})
    return known(tx, namespace, id)


def revoke(tx: Tx, namespace: str, id: str, actor: str) -> bool:
    """Ends a token and its sessions. False if it was revoked already."""
    found = known(tx, namespace, id)
    if found.revoked_at is not None:
        return False
    tx.run("revoke_token", namespace=namespace, id=id, actor=actor)
    audit(tx, namespace, actor, "token.revoke", found.name)
    return True


def note_uses(tx: Tx, of_tokens: Sequence[tuple[str, int]], of_sessions: Sequence[tuple[str, int]]) -> None:
    """When tokens and sessions were last used."""
    if of_tokens:
        tx.run("tokens_used", rows=sorted(of_tokens))
    if of_sessions:
        tx.run("sessions_used", rows=sorted(of_sessions))


def sign_in(tx: Tx, token: str, digest: str) -> None:
    """Adds a session of a token, and removes those that have ended."""
    bounds = {"used_before": tx.now - IDLE_S * MICROSECONDS, "created_before": tx.now - LONGEST_S * MICROSECONDS}
    tx.run("prune_sessions", **bounds)
    tx.run("add_session", digest=digest, token=token)


def sign_out(tx: Tx, digest: str) -> None:
    tx.run("end_session", digest=digest)


class ExceedsOwnRights(Conflict):
    code = "exceeds_own_rights"


class UnknownToken(Conflict):
    code = "not_found"


def known(tx: Tx, namespace: str, id: str) -> TokenRow:
    """The token, locked."""
    tx.rows("lock_token", namespace=namespace, id=id)
    found = access_reader.token(tx, namespace, id)
    if found is None:
        raise UnknownToken(f"there is no token {id}")
    return found


def _live(tx: Tx, namespace: str, id: str) -> TokenRow:
    found = known(tx, namespace, id)
    if found.revoked_at is not None:
        raise Conflict(f"token {found.name} is revoked")
    return found


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
