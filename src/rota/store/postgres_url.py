"""From `postgresql://user:secret@host:5432/database?schema=rota` to what psycopg needs, and to what may be shown."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from rota.domain.errors import DefinitionError

SCHEMES = ("postgresql", "postgres")
DEFAULT_SCHEMA = "rota"
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,50}")
# A connection that hangs is noticed within seconds, also while nothing is being sent.
_DEFAULTS = {
    "connect_timeout": "5",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
    "target_session_attrs": "read-write",
    "client_encoding": "utf8",
}


class Address(msgspec.Struct, frozen=True):
    """Where the database is: for psycopg, and for people."""

    conninfo: str
    schema: str
    shown: str


def is_postgres(url: str) -> bool:
    return url.split(":", 1)[0] in SCHEMES


def parse(url: str) -> Address:
    """Everything libpq understands may be in the URL, and reaches it as it was written; `schema` is ours.

    The rules for other URLs do not fit: there may be several hosts or none, and a plus sign is a plus sign.
    """
    head, _, query = url.partition("?")
    pairs = {pair.partition("=")[0]: pair for pair in query.split("&") if pair}
    schema = pairs.pop("schema", f"schema={DEFAULT_SCHEMA}").partition("=")[2]
    if not _SCHEMA.fullmatch(schema):
        raise DefinitionError(f"schema={schema!r} in the URL: use small letters, digits and _")
    defaults = {name: f"{name}={value}" for name, value in _DEFAULTS.items()}
    place = head.partition("://")[2]
    conninfo = f"postgresql://{place}?{'&'.join((defaults | pairs).values())}"
    _check(conninfo, [*pairs])
    return Address(conninfo, schema, shown(url))


def _check(conninfo: str, names: Sequence[str]) -> None:
    from psycopg import ProgrammingError  # lazy: whoever only asks whether a URL is PostgreSQL's does not need it
    from psycopg.conninfo import conninfo_to_dict  # lazy: as above

    try:
        conninfo_to_dict(conninfo)
    except ProgrammingError as error:
        # libpq quotes what it could not read, and that may be a password that should have been encoded.
        said = re.sub(r'"([^"]*)"', lambda found: found[0] if found[1] in names else "…", str(error).strip())
        raise DefinitionError(f"the PostgreSQL URL cannot be read ({said.rstrip(': …')}): {_EXAMPLE}") from None


def shown(url: str) -> str:
    """The URL without its secrets, for messages. A password that should have been encoded is one as well."""
    if not is_postgres(url):
        return url
    head, mark, query = url.partition("?")
    place = re.sub(r"://([^:@/]*):.*@", r"://\1:***@", head)
    return place + mark + re.sub(r"(?i)\b(password|sslpassword)=[^&]*", r"\1=***", query)


_EXAMPLE = "use postgresql://user:password@host:5432/database"
