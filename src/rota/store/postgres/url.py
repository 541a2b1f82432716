"""Translates `postgresql://user:secret@host:5432/database?schema=rota` for psycopg."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from rota.domain.errors import DefinitionError
from rota.domain.url import Parts, masked, split

SCHEMES = ("postgresql", "postgres")
DEFAULT_SCHEMA = "rota"
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,50}")
_SERVERS_OWN = re.compile(r"information_schema|pg_.*")
# A connection that hangs is noticed within seconds, also while nothing is being sent.
_DEFAULTS = {
    "connect_timeout": "5",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
    "target_session_attrs": "read-write",
}
# Rota always sends UTF-8, whatever the URL or the environment says.
_ALWAYS = {"client_encoding": "utf8"}


class Address(msgspec.Struct, frozen=True):
    """Where the database is: for psycopg, and for people."""

    conninfo: str
    schema: str
    shown: str

    def __repr__(self) -> str:
        return f"Address({self.shown!r}, schema={self.schema!r})"


def is_postgres(url: str) -> bool:
    return url.split(":", 1)[0] in SCHEMES


def parse(url: str) -> Address:
    """Passes every option that libpq understands on as it was written; `schema` is an option of Rota.

    The general URL rules do not apply: there may be several hosts or none, and a plus sign is a plus sign. A URL is
    refused if it is ambiguous because a special character was not encoded.
    """
    parts = _split(url)
    pairs = dict(parts.pairs)
    schema = pairs.pop("schema", f"schema={DEFAULT_SCHEMA}").partition("=")[2]
    if not _SCHEMA.fullmatch(schema):
        raise DefinitionError(f"schema={schema!r} in the URL: use small letters, digits and _")
    if _SERVERS_OWN.fullmatch(schema):
        raise DefinitionError(f"schema={schema!r} in the URL: that one is PostgreSQL's own; use another name")
    defaults = {name: f"{name}={value}" for name, value in _DEFAULTS.items()}
    always = {name: f"{name}={value}" for name, value in _ALWAYS.items()}
    options = "&".join((defaults | pairs | always).values())
    conninfo = f"postgresql://{parts.credentials}{parts.place}?{options}"
    # A name before an @ may be part of a password.
    _check(conninfo, [name for name, pair in pairs.items() if "@" not in pair])
    return Address(conninfo, schema, masked(url))


def _split(url: str) -> Parts:
    """The error quotes no part of the URL: it may be a password with characters that should have been encoded."""
    parts = split(url)
    if parts is not None and parts.scheme in SCHEMES:
        return parts
    encode = ", with % codes for what is special in a user or a password (%40 for @, %2F for /, %3A for :, %3F for ?)"
    raise DefinitionError(f"the PostgreSQL URL cannot be read: {_EXAMPLE}{encode if '://' in url else ''}")


def _check(conninfo: str, names: Sequence[str]) -> None:
    from psycopg import ProgrammingError  # lazy: `is_postgres` does not need psycopg
    from psycopg.conninfo import conninfo_to_dict  # lazy: as above

    try:
        conninfo_to_dict(conninfo)
    except ProgrammingError as error:
        # libpq quotes what it could not parse, and that may be a password.
        said = re.sub(r'(?s)"(.*)"', lambda found: found[0] if found[1] in names else "…", str(error).strip())
        raise DefinitionError(f"the PostgreSQL URL cannot be read ({said.rstrip(': …')}): {_EXAMPLE}") from None


_EXAMPLE = "use postgresql://user:password@host:5432/database"
