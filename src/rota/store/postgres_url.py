"""From `postgresql://user:secret@host:5432/database?schema=rota` to what psycopg needs, and to what may be shown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import unquote

import msgspec

from rota.domain.errors import DefinitionError

SCHEMES = ("postgresql", "postgres")
DEFAULT_SCHEMA = "rota"
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,50}")
_SERVERS_OWN = re.compile(r"information_schema|pg_.*")
_UTF8 = {"utf8", "unicode"}
# A connection that hangs is noticed within seconds, also while nothing is being sent.
_DEFAULTS = {
    "connect_timeout": "5",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
    "target_session_attrs": "read-write",
}
# What we send is UTF-8, whatever the URL or the environment says.
_ALWAYS = {"client_encoding": "utf8"}
_SECRET = {"password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key"}
_MAY_HOLD_AT = _SECRET | {"user", "options"}
# As libpq looks for them: up to the first @, unless there is a slash before it.
_CREDENTIALS = re.compile(r"(?P<user>[^:@/]*)(?P<secret>:[^@/]*)?@")
_HOSTS = re.compile(r"[^/?]*")
_PORT = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(:\d*)?")


class Address(msgspec.Struct, frozen=True):
    """Where the database is: for psycopg, and for people."""

    conninfo: str
    schema: str
    shown: str


class _Parts(msgspec.Struct, frozen=True):
    """A URL in pieces, as it was written."""

    user: str | None
    secret: str
    place: str
    """Hosts, ports and the database."""
    pairs: dict[str, str]
    """Each option as it was written, by its name."""

    @property
    def credentials(self) -> str:
        return "" if self.user is None else f"{self.user}{self.secret}@"


def is_postgres(url: str) -> bool:
    return url.split(":", 1)[0] in SCHEMES


def parse(url: str) -> Address:
    """Everything libpq understands may be in the URL, and reaches it as it was written; `schema` is ours.

    The rules for other URLs do not fit: there may be several hosts or none, and a plus sign is a plus sign. A URL that
    could be read in two ways, because something in it should have been encoded, is refused.
    """
    parts = _split(url)
    pairs = dict(parts.pairs)
    schema = pairs.pop("schema", f"schema={DEFAULT_SCHEMA}").partition("=")[2]
    if not _SCHEMA.fullmatch(schema):
        raise DefinitionError(f"schema={schema!r} in the URL: use small letters, digits and _")
    if _SERVERS_OWN.fullmatch(schema):
        raise DefinitionError(f"schema={schema!r} in the URL: that one is PostgreSQL's own; use another name")
    _check_encoding(pairs.pop("client_encoding", ""))
    defaults = {name: f"{name}={value}" for name, value in _DEFAULTS.items()}
    always = {name: f"{name}={value}" for name, value in _ALWAYS.items()}
    options = "&".join((defaults | pairs | always).values())
    conninfo = f"postgresql://{parts.credentials}{parts.place}?{options}"
    # A name that stands before an @ may be half of a password.
    _check(conninfo, [name for name, pair in pairs.items() if "@" not in pair])
    return Address(conninfo, schema, shown(url))


def shown(url: str) -> str:
    """The URL without its secrets, for messages. Of one that could be read in two ways nothing is shown."""
    if not is_postgres(url):
        return url
    scheme = url.split(":", 1)[0]
    try:
        parts = _split(url)
    except DefinitionError:
        return f"{scheme}://…"
    user = "" if parts.user is None else f"{parts.user}:***@" if parts.secret else f"{parts.user}@"
    pairs = [f"{name}=***" if name.lower() in _SECRET else pair for name, pair in parts.pairs.items()]
    return f"{scheme}://{user}{parts.place}{'?' if pairs else ''}{'&'.join(pairs)}"


def _split(url: str) -> _Parts:
    """Refuses without a word of the URL: any of it may be a password that should have been encoded."""
    scheme, mark, rest = url.partition("://")
    if not mark or scheme not in SCHEMES:
        raise DefinitionError(f"the PostgreSQL URL cannot be read: {_EXAMPLE}")
    found = _CREDENTIALS.match(rest)
    place, _, query = rest[found.end() if found else 0 :].partition("?")
    hosts = (_HOSTS.match(place) or [""])[0]
    pairs = {unquote(pair.partition("=")[0]): pair for pair in query.split("&") if pair}
    is_clear = (
        "@" not in place
        and all(_PORT.fullmatch(host) for host in hosts.split(","))
        and all("@" not in pair or name in _MAY_HOLD_AT for name, pair in pairs.items())
        and not (found and "?" in found["user"])
    )
    if not is_clear:
        raise DefinitionError(
            f"the PostgreSQL URL cannot be read: {_EXAMPLE}, with % codes for what is special in a user or a password "
            "(%40 for @, %2F for /, %3A for :, %3F for ?)"
        )
    return _Parts(found["user"] if found else None, (found["secret"] or "") if found else "", place, pairs)


def _check_encoding(pair: str) -> None:
    value = unquote(pair.partition("=")[2])
    if pair and re.sub(r"[^a-z0-9]", "", value.lower()) not in _UTF8:
        raise DefinitionError(f"client_encoding={value!r} in the URL: Rota speaks UTF-8 only; leave it out")


def _check(conninfo: str, names: Sequence[str]) -> None:
    from psycopg import ProgrammingError  # lazy: whoever only asks whether a URL is PostgreSQL's does not need it
    from psycopg.conninfo import conninfo_to_dict  # lazy: as above

    try:
        conninfo_to_dict(conninfo)
    except ProgrammingError as error:
        # libpq quotes what it could not read, and that may be a password that should have been encoded.
        said = re.sub(r'(?s)"(.*)"', lambda found: found[0] if found[1] in names else "…", str(error).strip())
        raise DefinitionError(f"the PostgreSQL URL cannot be read ({said.rstrip(': …')}): {_EXAMPLE}") from None


_EXAMPLE = "use postgresql://user:password@host:5432/database"
