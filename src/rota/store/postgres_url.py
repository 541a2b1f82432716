"""From `postgresql://user:secret@host:5432/database?schema=rota` to what psycopg needs, and to what may be shown."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

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
    """Everything libpq understands may be in the URL; `schema` is ours."""
    try:
        parts = urlsplit(url)
        pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError as error:
        raise DefinitionError(f"the PostgreSQL URL cannot be read ({error}): {_EXAMPLE}") from None
    given = dict(pairs)
    schema = given.pop("schema", DEFAULT_SCHEMA)
    if not _SCHEMA.fullmatch(schema):
        raise DefinitionError(f"schema={schema!r} in the URL: use small letters, digits and _")
    query = urlencode({name: given.get(name, value) for name, value in (_DEFAULTS | given).items()})
    conninfo = urlunsplit(("postgresql", parts.netloc, parts.path, query, ""))
    _check(conninfo)
    return Address(conninfo, schema, shown(url))


def _check(conninfo: str) -> None:
    from psycopg import ProgrammingError  # lazy: whoever only asks whether a URL is PostgreSQL's does not need it
    from psycopg.conninfo import conninfo_to_dict  # lazy: as above

    try:
        conninfo_to_dict(conninfo)
    except ProgrammingError as error:
        raise DefinitionError(f"the PostgreSQL URL cannot be read ({str(error).strip()}): {_EXAMPLE}") from None


def shown(url: str) -> str:
    """The URL without its secrets, for messages."""
    if not is_postgres(url):
        return url
    hidden = re.sub(r"(://[^/@:]*):[^/]*@", r"\1:***@", url)
    return re.sub(r"(?i)\b(password|sslpassword)=[^&]*", r"\1=***", hidden)


_EXAMPLE = "use postgresql://user:password@host:5432/database"
