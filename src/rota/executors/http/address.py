"""Which addresses a request may go to: public ones, and those that were allowed by name or network.

A host is looked up once, every address that comes back is checked, and the connection goes to one of those. So DNS
rebinding (other addresses after the check) has no effect. The name stays in the request and in the check of the
certificate.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rota.domain.errors import DefinitionError
from rota.executors.http.resolver import Resolver, Unresolved

if TYPE_CHECKING:
    import httpx
    from httpcore import AsyncConnectionPool, AsyncNetworkBackend, AsyncNetworkStream
else:
    AsyncNetworkBackend = object  # The real one is in an extra, and asks for nothing but the methods.

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

VARIABLE = "ROTA_HTTP_ALLOW"
MOST_ADDRESSES = 16
MOST_NAME = 253
MOST_CONNECTIONS = 100
MOST_IDLE = 4
IDLE_S = 5.0

_ALSO_REFUSED: tuple[Network, ...] = tuple(
    ip_network(network)
    for network in (
        "168.63.129.16/32",  # The metadata service of Azure; those of other clouds have private addresses.
        "192.0.0.0/24",  # Reserved by IANA; has the metadata service of Oracle.
        "192.88.99.0/24",  # 6to4 relays.
        "2001::/23",  # Reserved by IANA; has Teredo, whose addresses hold IPv4 addresses.
        "2002::/16",  # 6to4: holds an IPv4 address.
        "3fff::/20",  # Documentation.
    )
)
"""Networks that the `ipaddress` module takes for public, in all versions of Python or in older ones."""
_PUBLIC = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")  # IPv4 addresses in a network without IPv4.
URL = re.compile(r"(?P<start>https?://(?P<authority>[^/?#]+))(?P<path>[^?#]*)(?P<query>\?[^#]*)?", re.IGNORECASE)
resolver = Resolver()
_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?")


class Refused(Exception):
    """A request that is not made, and the reason in a sentence."""


class Allowed:
    """The networks and host names that may be called although their addresses are not public."""

    def __init__(self, entries: Iterable[str]) -> None:
        self._networks: list[Network] = []
        self._names: set[str] = set()
        if isinstance(entries, str):
            raise DefinitionError("allow takes a list of networks and hosts, not one text")
        for entry in entries:
            self._add(entry.strip())

    def _add(self, entry: str) -> None:
        try:
            self._networks.append(ip_network(entry, strict=False))
        except ValueError:
            if not _NAME.fullmatch(entry) or entry.rstrip(".").rpartition(".")[2].isdigit():
                raise DefinitionError(
                    f"allow takes networks such as 10.0.0.0/8 and names of hosts, not {entry!r}"
                ) from None
            self._names.add(_comparable(entry))

    def has_name(self, host: str) -> bool:
        return _comparable(host) in self._names

    def has_address(self, address: Address) -> bool:
        return any(address in network for network in self._networks)


def allowed(entries: Iterable[str]) -> Allowed:
    """The entries of a job, and those of the environment, which hold for every job of this process."""
    everywhere = os.environ.get(VARIABLE, "").split(",")
    return Allowed([*entries, *(entry for entry in everywhere if entry.strip())])


def why_not(address: Address) -> str | None:
    """Why an address is not public, as the end of a sentence; None if it is."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return why_not(address.ipv4_mapped)
        if address in _NAT64:
            return why_not(IPv4Address(int(address) & 0xFFFFFFFF))
    for kind in ("loopback", "link_local", "multicast", "private", "reserved"):
        if getattr(address, f"is_{kind}"):
            return f"is {kind.replace('_', '-')}"
    is_public = address.is_global and (isinstance(address, IPv4Address) or address in _PUBLIC)
    return None if is_public and not any(address in network for network in _ALSO_REFUSED) else "is reserved"


def _literal(host: str) -> Address | None:
    """The address that a host is by itself; None for a name, and for other spellings such as 127.1 or 0x7f000001.

    `getaddrinfo` understands those spellings, and its answer is checked as that for a name is.
    """
    try:
        return _unmapped(ip_address(host.strip("[]")))
    except ValueError:
        return None


def _unmapped(address: Address) -> Address:
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return address if mapped is None else mapped


def _comparable(host: str) -> str:
    return host.lower().removesuffix(".")


async def checked(host: str, allow: Allowed) -> list[str]:
    """The addresses of a host, all of them fit to be called; raises Refused if a single one is not."""
    if len(host) > MOST_NAME or "%" in host:
        raise Refused(f"the host {host[:MOST_NAME]!r} is not a valid host name")
    own = _literal(host)
    addresses = [own] if own is not None else await _looked_up(host)
    for address in [] if allow.has_name(host) else addresses:
        why = why_not(address)
        if why is not None and not allow.has_address(address):
            what = host if str(address) == host else f"{host} ({address})"
            raise Refused(f"{what} is not called, because the address {why}; allow= or {VARIABLE} can permit it")
    return [str(address) for address in addresses[:MOST_ADDRESSES]]


async def _looked_up(host: str) -> list[Address]:
    addresses = [_unmapped(ip_address(address)) for address in await resolver.look_up(host)]
    if not addresses:
        raise Unresolved(f"the name {host} has no addresses")
    return list(dict.fromkeys(addresses))


def check_template(url: str) -> None:
    """Raises DefinitionError for a URL with placeholders that could never be called."""
    parts = URL.fullmatch(url)
    if parts is None:
        raise DefinitionError("an HTTP job's url must begin with http:// or https:// and a host, and have no fragment")
    if re.search(r"[\x00-\x20\x7f\\]", url):
        raise DefinitionError("an HTTP job's url holds a character that must be encoded")
    if "@" in parts["authority"]:
        raise DefinitionError("an HTTP job's url must not hold a user or a password")
    if "{" in parts["authority"]:
        raise DefinitionError("an HTTP job's url may have placeholders only after the host and the port")


def check_literal(url: str) -> None:
    """Raises DefinitionError for a URL that could never be called, and Refused for one with a forbidden address in it.

    Names are looked up only when a request is sent.
    """
    check_template(url)
    if "{" in url or "}" in url:
        raise DefinitionError("the url holds a brace, which must be encoded")
    try:
        host = urlsplit(url).hostname or ""
    except ValueError as error:
        raise DefinitionError(f"the url is not valid: {error}") from None
    own = _literal(host) or _other_spelling(host)
    why = None if own is None else why_not(own)
    allow = allowed(())
    if own is not None and why is not None and not (allow.has_name(host) or allow.has_address(own)):
        raise Refused(f"{host} is not called, because the address {why}; {VARIABLE} of the workers can permit it")


def _other_spelling(host: str) -> Address | None:
    """The address that a host such as 127.1, 2130706433 or 0x7f000001 is."""
    if not re.fullmatch(r"[0-9a-fA-FxX.]+", host) or not host[:1].isdigit():
        return None
    try:
        return IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


def parsed(text: str, base: httpx.URL | None = None) -> httpx.URL:
    """A URL, perhaps relative to another; raises Refused for one that could never be called."""
    import httpx  # lazy: an extra

    try:
        url = httpx.URL(text) if base is None else base.join(text)
    except httpx.InvalidURL as error:
        raise Refused(f"the URL is not valid: {error}") from None
    if url.scheme not in ("http", "https"):
        raise Refused(f"only http and https are called, not {url.scheme or 'a URL without a scheme'} on {url.host}")
    if not url.host:
        raise Refused("the URL has no host")
    if url.port is not None and not 0 < url.port < 65_536:
        raise Refused(f"the URL for {url.host} names the port {url.port}, which cannot be")
    if url.userinfo:
        raise Refused(f"the URL for {url.host} holds a user or a password, which is not sent")
    return url


def follow(url: httpx.URL, location: str) -> httpx.URL:
    """Where a redirect from `url` leads; raises Refused if it must not be followed."""
    following = parsed(location, url)
    if url.scheme == "https" and following.scheme != "https":
        raise Refused(f"{url.host} redirects from https to http on {following.host}, which is not followed")
    return following


def is_as_trusted(url: httpx.URL, other: httpx.URL) -> bool:
    """Whether a redirect to `url` may get the credentials for `other`: its own origin, or the same host, encrypted."""
    if (url.scheme, url.host, url.port) == (other.scheme, other.host, other.port):
        return True
    # Credentials that were sent to port 80 unencrypted may be sent to port 443 of the same host, which has to prove it.
    usual = url.port is None and other.port is None
    return usual and url.host == other.host and (other.scheme, url.scheme) == ("http", "https")


class Gate(AsyncNetworkBackend):
    """How connections are opened: only to addresses that were checked, whatever name stands in the request."""

    def __init__(self, allow: Allowed) -> None:
        self._allow = allow

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> AsyncNetworkStream:
        import httpcore  # lazy: an extra

        try:
            async with asyncio.timeout(timeout):
                addresses = await checked(host, self._allow)
                # An address that does not answer must not use up the time of those after it.
                share = None if timeout is None else timeout / len(addresses)
                failed: Exception | None = None
                for address in addresses:
                    try:
                        return await httpcore.AnyIOBackend().connect_tcp(address, port, share, local_address)
                    except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                        failed = error
                raise failed or httpcore.ConnectError(f"{host} has no addresses")
        except TimeoutError:
            raise httpcore.ConnectTimeout(f"{host} did not accept a connection in time") from None


@cache
def missing() -> str:
    """What to install before a request can be sent; empty if everything is there. Imports nothing."""
    try:
        is_there = all(find_spec(name) is not None for name in ("httpx", "httpcore", "certifi"))
    except ValueError:  # A stand-in for one of these modules has no specification.
        is_there = False
    return "" if is_there else "pip install rota[http]"


@cache
def prepared() -> ssl.SSLContext:
    """The system's certificates. Imports the extra as well, so the first call takes long."""
    import certifi  # lazy: an extra
    import httpx  # noqa: F401  # lazy: an extra

    context = ssl.create_default_context()
    if not context.cert_store_stats()["x509_ca"]:
        context.load_verify_locations(certifi.where())
    return context


def pool(allow: Allowed) -> AsyncConnectionPool:
    """Connections through a Gate. Nothing of the environment counts, except where the system keeps certificates."""
    import httpcore  # lazy: an extra

    return httpcore.AsyncConnectionPool(
        ssl_context=prepared(),
        max_connections=MOST_CONNECTIONS,
        max_keepalive_connections=MOST_IDLE,
        keepalive_expiry=IDLE_S,
        network_backend=Gate(allow),
    )


def trouble(error: Exception) -> tuple[str, str] | None:
    """Why a request got no answer, as the type of an error and a sentence; None for a defect of Rota."""
    import httpcore  # lazy: an extra

    causes: list[BaseException] = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None and len(causes) < 10:
        causes.append(cause)
    for cause in causes:
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLWantReadError):
            return "HttpTls", f"the encrypted connection failed: {getattr(cause, 'verify_message', '') or cause.reason}"
        if isinstance(cause, ConnectionRefusedError):
            return "HttpConnection", "the connection was refused"
    match error:
        case Unresolved():
            return "HttpName", str(error)
        case httpcore.ConnectTimeout():
            return "HttpTimeout", "no connection was accepted in time"
        case TimeoutError() | httpcore.TimeoutException():
            return "HttpTimeout", "there was no complete answer in time"
        case httpcore.NetworkError() | OSError():
            return "HttpConnection", f"the connection failed: {error}"
        case httpcore.ProtocolError():
            return "HttpProtocol", f"the exchange broke the rules of HTTP: {error}"
        case _:
            return None
