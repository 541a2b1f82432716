"""Inbound webhooks: how a request proves that it comes from the sender, and how a repeated one is recognised.

    scheme      the request carries                                                      signed
    standard    webhook-id, webhook-timestamp, webhook-signature: v1,BASE64 …            id.timestamp.body
    github      X-Hub-Signature-256: sha256=HEX                                          the body
    hmac        a header with HEX or base64, after sha256= or without it; maybe          the body, or timestamp.body
                another header with the time, in seconds since 1970
    bearer      Authorization: Bearer SECRET                                             nothing

`standard` is the specification Standard Webhooks. Signatures are HMAC-SHA256. They are compared in constant time, with
the secret and, during the overlap of a rotation, with the one before it. A request whose time is more than five minutes
off is refused: otherwise a recorded one could be sent again later. The schemes without a time cannot refuse that; there
only `dedupe` recognises a repetition.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from rota.domain.errors import DefinitionError
from rota.domain.instant import MICROSECONDS

TOLERANCE_S = 300
SECRET_BITS = 256
KEY_BITS = 128
LEAST_SECRET, MOST_SECRET = 16, 512
MOST_VALUE = 200
"""A longer id of a request is replaced by its hash."""
STANDARD_PREFIX = "whsec_"
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}", re.ASCII)
_POINTER = re.compile(r"(/([^~/\x00]|~[01])*)+")
_SECONDS = re.compile(r"[0-9]{1,12}", re.ASCII)


class Scheme(StrEnum):
    """How a request proves where it comes from."""

    STANDARD = "standard"
    GITHUB = "github"
    HMAC = "hmac"
    BEARER = "bearer"


class Dedupe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Where the id of a request is: in a header, or in the JSON of its body."""

    header: str | None = None
    pointer: str | None = None


class Rules(msgspec.Struct, frozen=True):
    """The checks of a hook. The headers are those of the scheme `hmac`."""

    scheme: Scheme
    dedupe: Dedupe | None = None
    signature_header: str | None = None
    timestamp_header: str | None = None


DEFAULT_DEDUPE = {
    Scheme.STANDARD: Dedupe(header="webhook-id"),
    Scheme.GITHUB: Dedupe(header="X-GitHub-Delivery"),
}
DEFAULT_SIGNATURE_HEADER = "X-Signature"


def checked(rules: Rules) -> Rules:
    """The rules with their defaults; refuses invalid rules."""
    if rules.scheme is not Scheme.HMAC and (rules.signature_header or rules.timestamp_header):
        raise DefinitionError(f"signatureHeader and timestampHeader are for the scheme hmac, not {rules.scheme}")
    dedupe = rules.dedupe or DEFAULT_DEDUPE.get(rules.scheme)
    signature = (rules.signature_header or DEFAULT_SIGNATURE_HEADER) if rules.scheme is Scheme.HMAC else None
    for name in (signature, rules.timestamp_header, dedupe.header if dedupe else None):
        if name is not None and not _HEADER.fullmatch(name):
            raise DefinitionError(f"{name[:64]!r} is not the name of a header")
    if dedupe is not None:
        _check_dedupe(dedupe)
    return msgspec.structs.replace(rules, dedupe=dedupe, signature_header=signature)


def written_secret(scheme: Scheme, bits: int) -> str:
    """A new secret, in the form that senders of this scheme expect."""
    if scheme is Scheme.STANDARD:
        return STANDARD_PREFIX + base64.b64encode(bits.to_bytes(SECRET_BITS // 8)).decode()
    return f"{bits:0{SECRET_BITS // 4}x}"


def written_key(bits: int) -> str:
    """The random part of an address."""
    return f"{bits:0{KEY_BITS // 4}x}"


def check_secret(scheme: Scheme, secret: str) -> str:
    """A secret that the sender has chosen."""
    if not (LEAST_SECRET <= len(secret) <= MOST_SECRET and secret.isascii() and secret.isprintable()):
        raise DefinitionError(f"a secret has {LEAST_SECRET} to {MOST_SECRET} printable ASCII characters")
    if scheme is Scheme.STANDARD and _standard_key(secret) is None:
        raise DefinitionError("a secret of the scheme standard is whsec_ and base64")
    return secret


def stored_secret(scheme: Scheme, secret: str) -> str:
    """The form in which a secret is stored: the secret itself if it checks signatures, otherwise its hash."""
    return hashlib.sha256(secret.encode()).hexdigest() if scheme is Scheme.BEARER else secret


def refusal(rules: Rules, secrets: Sequence[str], headers: Mapping[str, str], body: bytes, now: int) -> str | None:
    """Why a request is refused; None if it is genuine. Headers are by name in lower case; `secrets` as stored."""
    match rules.scheme:
        case Scheme.STANDARD:
            return _standard(secrets, headers, body, now)
        case Scheme.GITHUB:
            given = headers.get("x-hub-signature-256", "")
            is_good = given.startswith("sha256=") and _fits(secrets, body, [given.removeprefix("sha256=")])
            return None if is_good else "X-Hub-Signature-256 is missing or wrong"
        case Scheme.HMAC:
            return _hmac(rules, secrets, headers, body, now)
        case Scheme.BEARER:
            return _bearer(secrets, headers)


def request_id(rules: Rules, headers: Mapping[str, str], value: Any) -> str | None:
    """The id by which a repeated request is recognised; None if the hook has no rule for it.

    A request without the id that the rule names is refused. If the rule is missing and the signature covers the time,
    the signature is the id.
    """
    dedupe = rules.dedupe
    if dedupe is None:
        has_time = rules.scheme is Scheme.HMAC and rules.timestamp_header is not None
        return _short(headers.get((rules.signature_header or "").lower(), "")) if has_time else None
    if dedupe.header is not None:
        found = headers.get(dedupe.header.lower(), "").strip()
        if not found:
            raise NoRequestId(f"the header {dedupe.header}, by which repeated requests are recognised, is missing")
        return _short(found)
    assert dedupe.pointer is not None, "a rule has a header or a pointer"
    part = _at(value, dedupe.pointer)
    if not isinstance(part, str | int) or isinstance(part, bool) or part == "":
        raise NoRequestId(
            f"the body has no text or whole number at {dedupe.pointer}, by which repeated requests are recognised"
        )
    return _short(str(part))


class NoRequestId(DefinitionError):
    """A request lacks the id that its hook needs."""


def _check_dedupe(dedupe: Dedupe) -> None:
    if (dedupe.header is None) == (dedupe.pointer is None):
        raise DefinitionError("dedupe has a header or a pointer: give one of them")
    if dedupe.pointer is not None and (len(dedupe.pointer) > MOST_VALUE or not _POINTER.fullmatch(dedupe.pointer)):
        raise DefinitionError("dedupe: a pointer is a JSON pointer such as /data/id")


def _standard(secrets: Sequence[str], headers: Mapping[str, str], body: bytes, now: int) -> str | None:
    id, at, given = (headers.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature"))
    if not id or not at or not given:
        return "webhook-id, webhook-timestamp or webhook-signature is missing"
    if not _is_recent(at, now):
        return f"webhook-timestamp is more than {TOLERANCE_S // 60} minutes off"
    signatures = [one.removeprefix("v1,") for one in given.split(" ") if one.startswith("v1,")]
    signed = f"{id}.{at}.".encode() + body
    keys = [key for secret in secrets if (key := _standard_key(secret)) is not None]
    return None if _fits_keys(keys, signed, signatures) else "webhook-signature is wrong"


def _hmac(rules: Rules, secrets: Sequence[str], headers: Mapping[str, str], body: bytes, now: int) -> str | None:
    name = rules.signature_header or DEFAULT_SIGNATURE_HEADER
    given = headers.get(name.lower(), "").strip().removeprefix("sha256=")
    signed = body
    if rules.timestamp_header is not None:
        at = headers.get(rules.timestamp_header.lower(), "")
        if not _is_recent(at, now):
            return f"{rules.timestamp_header} is missing or more than {TOLERANCE_S // 60} minutes off"
        signed = at.encode() + b"." + body
    return None if _fits(secrets, signed, [given]) else f"{name} is missing or wrong"


def _bearer(secrets: Sequence[str], headers: Mapping[str, str]) -> str | None:
    scheme, _, given = headers.get("authorization", "").partition(" ")
    digest = hashlib.sha256(given.encode()).hexdigest()
    is_good = False
    for secret in secrets:
        is_good |= hmac.compare_digest(secret, digest)
    return None if is_good and scheme.lower() == "bearer" else "Authorization: Bearer is missing or wrong"


def _fits(secrets: Sequence[str], signed: bytes, signatures: Sequence[str]) -> bool:
    return _fits_keys([secret.encode() for secret in secrets], signed, signatures)


def _fits_keys(keys: Sequence[bytes], signed: bytes, signatures: Sequence[str]) -> bool:
    """Whether one of the signatures is that of one of the keys. Looks at all of them, whichever fits."""
    given = [digest for one in signatures[:16] if (digest := _digest(one)) is not None]
    is_good = False
    for key in keys:
        expected = hmac.new(key, signed, hashlib.sha256).digest()
        for one in given:
            is_good |= hmac.compare_digest(expected, one)
    return is_good


def _digest(text: str) -> bytes | None:
    """The 32 bytes of a signature, from hexadecimal digits or base64; None for a text of another length."""
    try:
        found = bytes.fromhex(text) if len(text) == 64 else base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        return None
    return found if len(found) == 32 else None


def _standard_key(secret: str) -> bytes | None:
    try:
        return base64.b64decode(secret.removeprefix(STANDARD_PREFIX), validate=True) or None
    except (ValueError, binascii.Error):
        return None


def _is_recent(text: str, now: int) -> bool:
    return _SECONDS.fullmatch(text) is not None and abs(now / MICROSECONDS - int(text)) <= TOLERANCE_S


def _at(value: Any, pointer: str) -> Any:
    """The value at a JSON pointer; None if there is none."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and name.isdigit() and len(name) < 9 and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return value


def _short(text: str) -> str:
    is_plain = len(text) <= MOST_VALUE and text.isascii() and text.isprintable()
    return text if is_plain else f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
