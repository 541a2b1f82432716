"""URLs of databases: split, and masked for messages, logs and `repr()`.

Everything that prints a URL calls `masked`. It never shows a part that may be a secret: an ambiguous URL, in which a
character should have been percent-encoded, is shown as `scheme://…` or as `…`.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

import msgspec

MASK = "***"
_SECRET = re.compile(r"pass(word|wd|phrase)|pwd|secret|token|credential|api_?key|(client|server)_key", re.IGNORECASE)
_MAY_HOLD_AT = {"user", "options"}
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//)?")
# As libpq looks for them: up to the first @, unless there is a slash before it.
_CREDENTIALS = re.compile(r"(?P<user>[^:@/]*)(?P<secret>:[^@/]*)?@")
_HOSTS = re.compile(r"[^/?]*")
_PORT = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(:\d*)?")
_FILE = re.compile(r"[\w./ -]*")
# SQLite URLs have no password, and messages name the file anyway.
_SQLITE = re.compile(r"sqlite://(/?:memory:|/[^?@]*|/[^?:]*)")
# The scheme has a maximum length: otherwise a search in a long word would take quadratic time.
_URL_IN_TEXT = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,31}://\S*")
_KEYWORD_IN_TEXT = re.compile(r"((?:password|passwd|pwd)\s*=\s*)('[^']*'?|\S+)", re.IGNORECASE)
_EXAMPLE = "postgresql://user:password@"


class Parts(msgspec.Struct, frozen=True):
    """A URL in pieces, as it was written."""

    scheme: str
    user: str | None
    secret: str
    place: str
    """Hosts, ports and the database."""
    pairs: dict[str, str]
    """Each option as it was written, by its name."""

    @property
    def credentials(self) -> str:
        return "" if self.user is None else f"{self.user}{self.secret}@"


def split(url: str) -> Parts | None:
    """The pieces of `scheme://user:secret@hosts/database?options`; None if it could be read in two ways."""
    scheme, mark, rest = url.partition("://")
    if not mark:
        return None
    found = _CREDENTIALS.match(rest)
    place, _, query = rest[found.end() if found else 0 :].partition("?")
    hosts = (_HOSTS.match(place) or [""])[0]
    pairs = {unquote(pair.partition("=")[0]): pair for pair in query.split("&") if pair}
    is_clear = (
        "@" not in place
        and all(_PORT.fullmatch(host) for host in hosts.split(","))
        and all("@" not in pair or name in _MAY_HOLD_AT or _SECRET.search(name) for name, pair in pairs.items())
        and not (found and "?" in found["user"])
    )
    if not is_clear:
        return None
    return Parts(scheme, found["user"] if found else None, (found["secret"] or "") if found else "", place, pairs)


def masked(url: str) -> str:
    """The URL without its passwords; safe to print whatever the text is, such as the keywords of libpq."""
    text = url.strip()
    if _SQLITE.fullmatch(text):
        return text
    scheme = _SCHEME.match(text)
    if scheme is None:
        return text if _FILE.fullmatch(text) else "…"
    if not scheme[2]:
        return f"{scheme[1]}:…"
    parts = split(text)
    if parts is None:
        return f"{scheme[1]}://…"
    pairs = [f"{name}={MASK}" if _SECRET.search(name) else pair for name, pair in parts.pairs.items()]
    return f"{scheme[1]}://{_masked_user(parts)}{parts.place}{'?' if pairs else ''}{'&'.join(pairs)}"


def masked_text(text: str) -> str:
    """A message with every URL in it masked, for messages that quote what a user typed."""
    text = _URL_IN_TEXT.sub(lambda found: found[0] if found[0].startswith(_EXAMPLE) else masked(found[0]), text)
    return _KEYWORD_IN_TEXT.sub(rf"\1{MASK}", text)


def _masked_user(parts: Parts) -> str:
    if parts.user is None:
        return ""
    if not parts.scheme.lower().startswith("postgres"):
        return f"{MASK}@"  # Elsewhere the name of the user may be the secret.
    return f"{parts.user}:{MASK}@" if parts.secret else f"{parts.user}@"
