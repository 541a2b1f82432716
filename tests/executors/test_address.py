"""Which addresses may be called: a private one is recognised in every notation, and the checked address is called."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Any

import httpcore
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.clock import ManualClock
from rota.domain.errors import DefinitionError
from rota.executors.http import address
from rota.executors.http.address import Allowed, Refused, checked, why_not
from rota.executors.http.request import Request
from rota.executors.http.resolver import KEPT_S, Resolver, Unresolved
from tests.executors.test_http import LOCAL, Server, answer, failure, result
from tests.support.waiting import eventually

PUBLIC = "93.184.215.14"


class Dialled:
    """Stands for the network: records which addresses are called, and refuses every connection."""

    def __init__(self) -> None:
        self.addresses: list[str] = []

    async def connect_tcp(self, host: str, *_: Any) -> Any:
        self.addresses.append(host)
        raise httpcore.ConnectError("nobody is there")


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch) -> Dialled:
    dialled = Dialled()
    monkeypatch.setattr(httpcore, "AnyIOBackend", lambda: dialled)
    return dialled


class Names:
    """Stands for the name service: each lookup takes the next answer, the last one forever."""

    def __init__(self, *answers: list[str]) -> None:
        self.asked: list[object] = []
        self._answers = list(answers)

    def __call__(self, host: object, port: object, *_: object, **__: object) -> list[Any]:
        self.asked.append(host)
        found = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return [(socket.AF_INET6 if ":" in one else socket.AF_INET, 1, 6, "", (one, port)) for one in found]


def lookups(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> Names:
    names = Names(*answers)
    monkeypatch.setattr(socket, "getaddrinfo", names)
    return names


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1.",
        "127.1",
        "127.0.1",
        "127.255.255.254",
        "2130706433",
        "017700000001",
        "0x7f000001",
        "0X7F.1",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "0177.0x0.0.01",
        "127。0。0。1",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "0",
        "0.0.0.0",
        "0x0",
        "0.1.2.3",
        "10.0.0.1",
        "10.1",
        "167772161",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "192.168.257",
        "0xc0a80101",
        "100.64.0.1",
        "100.127.255.255",
        "169.254.0.1",
        "169.254.169.254",
        "0xa9fea9fe",
        "2852039166",
        "169.254.43518",
        "168.63.129.16",
        "100.100.100.200",
        "192.0.0.192",
        "192.0.2.1",
        "192.88.99.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "4294967295",
        "[::]",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[::127.0.0.1]",
        "[::8.8.8.8]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::ffff:10.0.0.1]",
        "[::FFFF:A9FE:A9FE]",
        "[::ffff:0:127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[64:ff9b::a9fe:a9fe]",
        "[64:ff9b:1::8.8.8.8]",
        "[2002:7f00:1::]",
        "[2002:a00:1::1]",
        "[2001::1]",
        "[2001:0:4136:e378:8000:63bf:3fff:fdd2]",
        "[2001:db8::1]",
        "[3fff::1]",
        "[5f00::1]",
        "[100::1]",
        "[fc00::1]",
        "[fd00:ec2::254]",
        "[fd20:ce::254]",
        "[fe80::1]",
        "[fe80::1%25eth0]",
        "[::1%25lo]",
        "[fec0::1]",
        "[ff02::1]",
        "256.256.256.256",
        "1.2.3.4.5",
        "127.0.0.08",
        "4294967296",
        "127.0.0.0x",
        "a.b.0x7f",
        "9" * 100,
    ],
)
async def test_a_private_address_is_refused_in_every_notation(
    host: str, dialled: Dialled, monkeypatch: pytest.MonkeyPatch
) -> None:
    lookups(monkeypatch, ["127.0.0.1"])
    failed = await failure(Request(f"http://{host}/path?token=hidden"))
    assert (failed.error.type, failed.permanent, dialled.addresses) == ("HttpRefused", True, []), failed
    assert "hidden" not in failed.error.message


async def test_a_refusal_names_the_host_and_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    lookups(monkeypatch, ["10.0.0.7"])
    failed = await failure(Request("http://inside.example/hook?token=hidden"))
    assert failed.error.message == (
        "POST http://inside.example/hook?token=…: inside.example (10.0.0.7) is not called, because the address "
        "is private; allow= or ROTA_HTTP_ALLOW can permit it"
    )


@pytest.mark.parametrize(
    ("host", "called"),
    [
        (PUBLIC, PUBLIC),
        ("8.8.2056", "8.8.8.8"),
        ("134744072", "8.8.8.8"),
        ("010.0x8.8.8", "8.8.8.8"),
        ("[2606:2800:21f:cb07:6820:80da:af6b:8b2c]", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"),
        ("[::ffff:8.8.8.8]", "8.8.8.8"),
        ("[64:ff9b::8.8.8.8]", "64:ff9b::808:808"),
    ],
)
async def test_a_public_address_is_called(host: str, called: str, dialled: Dialled) -> None:
    failed = await failure(Request(f"http://{host}/"))
    assert (failed.error.type, dialled.addresses) == ("HttpConnection", [called])


@given(st.ip_addresses())
def test_only_globally_reachable_addresses_are_public(any_address: Any) -> None:
    # Newer versions of Python know more of what is special; none may know of less than is refused here.
    if any_address.is_private or any_address.is_multicast or any_address.is_reserved or any_address.is_link_local:
        stands_for_another = any_address.version == 6 and (any_address.ipv4_mapped or any_address in address._NAT64)
        assert stands_for_another or why_not(any_address) is not None


@given(st.ip_addresses(v=4), st.integers(1, 4), st.lists(st.sampled_from(["{}", "{:#x}", "0{:o}"]), min_size=4))
def test_all_notations_of_an_address_are_the_same_address(any_address: Any, count: int, forms: list[str]) -> None:
    number = int(any_address)
    firsts = [number >> 8 * (3 - index) & 255 for index in range(count - 1)]
    parts = [*firsts, number & (1 << 8 * (5 - count)) - 1]
    host = ".".join(form.format(part) for form, part in zip(forms, parts, strict=False))
    assert asyncio.run(checked(host, Allowed(["0.0.0.0/0"]))) == [str(any_address)]


# --- Names ----------------------------------------------------------------------------------------


async def test_dns_rebinding_does_not_reach_a_private_address(
    monkeypatch: pytest.MonkeyPatch, dialled: Dialled
) -> None:
    names = lookups(monkeypatch, [PUBLIC], ["127.0.0.1"])
    await failure(Request("http://flips.example/"))
    assert (dialled.addresses, len(names.asked)) == ([PUBLIC], 1)
    failed = await failure(Request("http://flips.example/"))
    assert (failed.error.type, dialled.addresses) == ("HttpRefused", [PUBLIC])


async def test_the_resolved_address_is_called_with_the_host_name(monkeypatch: pytest.MonkeyPatch) -> None:
    names = lookups(monkeypatch, ["127.0.0.1"], ["203.0.113.9"])
    async with Server(answer()) as server:
        assert await result(Request(f"http://hook.test:{server.port}/", allow=LOCAL)) is None
    assert server.seen[0].headers["host"] == f"hook.test:{server.port}"
    assert len(names.asked) == 1


@pytest.mark.parametrize("private", ["10.0.0.1", "::1", "::ffff:169.254.169.254", "fe80::1%eth0"])
async def test_a_name_with_one_private_address_is_refused(
    private: str, monkeypatch: pytest.MonkeyPatch, dialled: Dialled
) -> None:
    lookups(monkeypatch, [PUBLIC, private])
    failed = await failure(Request("http://mixed.example/"))
    assert (failed.error.type, failed.permanent, dialled.addresses) == ("HttpRefused", True, [])


async def test_the_next_address_is_called_if_the_first_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    lookups(monkeypatch, ["127.0.0.2", "127.0.0.1"])
    async with Server(answer()) as server:
        assert await result(Request(f"http://hook.test:{server.port}/", allow=LOCAL)) is None


async def test_a_request_to_an_unknown_name_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> list[Any]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    failed = await failure(Request("http://nowhere.example/"))
    assert (failed.error.type, failed.permanent) == ("HttpName", False)
    assert "nowhere.example could not be looked up" in failed.error.message


async def test_a_request_to_a_name_without_addresses_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    lookups(monkeypatch, [])
    with pytest.raises(Unresolved):
        await checked("empty.example", Allowed([]))


@pytest.mark.parametrize("host", [f"{'a' * 64}.example", "a" * 300, "a..b"])
async def test_an_invalid_name_is_a_failure(host: str, dialled: Dialled) -> None:
    assert (await failure(Request(f"http://{host}/"))).error.type in {"HttpName", "HttpRefused"}
    assert dialled.addresses == []


# --- Names whose servers do not answer ------------------------------------------------------------


class Silent:
    """Stands for a name service in which the names below `silent.test` are not answered until the end of the test."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.released = threading.Event()

    def __call__(self, host: str, *_: object, **__: object) -> list[Any]:
        self.asked.append(host)
        if host.endswith("silent.test"):
            self.released.wait(60)
        return [(socket.AF_INET, 1, 6, "", ("127.0.0.1", 0))]


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Silent]:
    silent = Silent()
    monkeypatch.setattr(socket, "getaddrinfo", silent)
    monkeypatch.setattr(address, "resolver", Resolver())
    yield silent
    silent.released.set()


async def test_a_lookup_that_hangs_fails_after_the_connect_timeout(silent: Silent) -> None:
    failed = await failure(Request("http://silent.test/", connect_timeout_s=0.05))
    assert (failed.error.type, failed.permanent) == ("HttpTimeout", False)


async def test_lookups_that_hang_do_not_delay_other_names(silent: Silent) -> None:
    slow = [asyncio.ensure_future(address.resolver.look_up(f"{number}.silent.test")) for number in range(40)]
    async with Server(answer()) as server:
        url = f"http://hook.test:{server.port}/"
        assert await result(Request(url, allow=LOCAL, connect_timeout_s=20)) is None
    assert not any(task.done() for task in slow)
    silent.released.set()
    assert await asyncio.gather(*slow) == [["127.0.0.1"]] * 40


async def test_a_name_has_one_lookup_even_if_a_caller_gives_up(silent: Silent) -> None:
    first, second, third = (asyncio.ensure_future(address.resolver.look_up("silent.test")) for _ in range(3))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    silent.released.set()
    assert [await second, await third] == [["127.0.0.1"]] * 2
    assert silent.asked == ["silent.test"]


async def test_while_all_lookups_hang_only_recently_resolved_names_are_called(silent: Silent) -> None:
    clock = ManualClock()
    resolver = Resolver(most=3, clock=clock)
    assert await resolver.look_up("known.test") == ["127.0.0.1"]
    slow = [asyncio.ensure_future(resolver.look_up(f"{number}.silent.test")) for number in range(3)]
    await asyncio.to_thread(eventually, lambda: len(silent.asked) == 4)
    clock.advance(KEPT_S)
    assert await resolver.look_up("Known.test") == ["127.0.0.1"]
    with pytest.raises(Unresolved, match=r"the name new\.test was not looked up: 3 other names wait"):
        await resolver.look_up("new.test")
    clock.advance(1)
    with pytest.raises(Unresolved):
        await resolver.look_up("known.test")
    assert len(silent.asked) == 4
    silent.released.set()
    await asyncio.gather(*slow)
    assert await resolver.look_up("new.test") == ["127.0.0.1"]


# --- What is allowed ------------------------------------------------------------------------------


async def test_only_an_allowed_private_network_is_called() -> None:
    allow = Allowed(["10.1.0.0/16", "fd00::/8"])
    assert await checked("10.1.2.3", allow) == ["10.1.2.3"]
    assert await checked("::ffff:10.1.2.3", allow) == ["10.1.2.3"]
    assert await checked("fd12::1", allow) == ["fd12::1"]
    for host in ("10.2.0.1", "127.0.0.1", "fe80::1", "2002:a01:203::", "64:ff9b::10.1.2.3"):
        with pytest.raises(Refused):
            await checked(host, allow)


async def test_an_allowed_host_is_called_only_by_that_name(monkeypatch: pytest.MonkeyPatch) -> None:
    lookups(monkeypatch, ["10.0.0.1"])
    allow = Allowed(["Intranet.Example."])
    assert await checked("intranet.example", allow) == ["10.0.0.1"]
    assert await checked("INTRANET.example.", allow) == ["10.0.0.1"]
    for host in ("10.0.0.1", "other.example", "sub.intranet.example", "xintranet.example"):
        with pytest.raises(Refused):
            await checked(host, allow)


async def test_the_environment_variable_allows_addresses_for_the_whole_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_HTTP_ALLOW", " 127.0.0.0/8 ,, intranet.example")
    async with Server(answer()) as server:
        assert await result(Request(server.url)) is None
    assert address.allowed([]).has_name("intranet.example")
    assert not address.allowed([]).has_address(ip_address("10.0.0.1"))


@pytest.mark.parametrize("entry", ["", "10.0.0.0/33", "10.0.0", "a b", "http://a", "*.example", "-a", "256.1.1.1"])
def test_a_text_that_is_neither_a_network_nor_a_host_cannot_be_allowed(entry: str) -> None:
    with pytest.raises(DefinitionError):
        Allowed([entry])
