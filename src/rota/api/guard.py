"""What is checked before routing, for every request: sizes, repeated headers, Host and Origin.

A server on loopback without tokens can be reached by every web page that its user opens: by DNS rebinding, which the
Host shows, and by forms and scripts, which Origin and Sec-Fetch-Site show.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from rota.api.problem import Problem
from rota.api.services import Exposure

MOST_HEADERS = 16 * 1024
MOST_URL = 8 * 1024
PROBES = ("/health", "/ready")
"""Paths that load balancers call by an address, so any Host is right for them."""
_ONCE = {"authorization", "host", "content-length", "content-type", "content-encoding", "idempotency-key", "origin"}
_TOKEN_PARAMETERS = ("token=", "access_token=", "authorization=", "api_key=")


def headers_of(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """The headers by their names in lower case. Repeated ones are joined, or refused where that would be unsafe."""
    found: dict[str, str] = {}
    size = 0
    for raw_name, raw_value in pairs:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        size += len(name) + len(value) + 4
        if name in found and name in _ONCE:
            raise Problem("bad_header", f"the header {name} is given twice")
        found[name] = f"{found[name]}{'; ' if name == 'cookie' else ', '}{value}" if name in found else value
    if size > MOST_HEADERS:
        raise Problem("headers_too_large", f"the headers are larger than {MOST_HEADERS:,} bytes")
    return found


def check_url(raw_path: bytes, query: bytes) -> None:
    if len(raw_path) + len(query) > MOST_URL:
        raise Problem("uri_too_long", f"the URL is longer than {MOST_URL:,} bytes")
    if not query:
        return
    lowered = query.lower()
    if any(
        f"{'' if at == 0 else '&'}{name}".encode() in (lowered[: len(name)] if at == 0 else lowered)
        for name in _TOKEN_PARAMETERS
        for at in (0, 1)
    ):
        raise Problem("bad_parameter", "a token in a URL ends up in logs: send it as Authorization: Bearer …")


def check_host(host: str, path: str, exposure: Exposure, *, is_open: bool) -> None:
    """While there are no tokens, only the names of this machine are right; else those of `allowed_hosts`, if set."""
    if path in PROBES:
        return
    name = host_name(host)
    if is_open and not is_loopback(name):
        raise Problem("bad_host", "without tokens this server answers only to the names of this machine: localhost")
    if not is_open and exposure.allowed_hosts and name not in exposure.allowed_hosts:
        raise Problem("bad_host", "this name is not among the allowed hosts of the server")


def check_origin(method: str, headers: Mapping[str, str], scheme: str, exposure: Exposure, *, is_stream: bool) -> None:
    """Refuses changes and streams that a page of another origin asks for."""
    if method in ("GET", "HEAD") and not is_stream:
        return
    origin = headers.get("origin")
    if origin is not None and origin in exposure.cors_origins and "authorization" in headers:
        return
    own = exposure.public_url or f"{scheme}://{headers.get('host', '')}"
    if origin is not None and origin.rstrip("/") != own.rstrip("/"):
        raise Problem("cross_origin", "a page of another origin may not do this")
    if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        raise Problem("cross_origin", "a page of another site may not do this")


@lru_cache(maxsize=1000)
def host_name(host: str) -> str:
    """The name in a Host header, without the port."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


@lru_cache(maxsize=1000)
def is_loopback(name: str) -> bool:
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
