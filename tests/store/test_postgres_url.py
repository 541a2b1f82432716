"""URLs of PostgreSQL: what is wrong with one is said in words, and never with its password."""

from __future__ import annotations

import pytest

from rota.domain.errors import DefinitionError, StoreUnavailable
from rota.store import postgres_url
from rota.store.opening import open_store


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://host/database?schema=Not-Fine", "schema='Not-Fine'.*small letters, digits and _"),
        ("postgresql://host/database?schema=", "schema=''"),
        ("postgresql://host/database?nonsense", "cannot be read.*postgresql://user:password@host:5432/database"),
        ("postgresql://[half/database", "cannot be read.*postgresql://user:password@host:5432/database"),
        ("postgresql://host/data%zzbase", "cannot be read.*postgresql://user:password@host:5432/database"),
        ("postgresql://host/database?no_such_option=1", "no_such_option.*postgresql://user:password@host"),
    ],
)
def test_a_malformed_url_is_refused_in_words(url: str, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        open_store(url)


def test_a_url_may_say_everything_that_libpq_understands() -> None:
    url = "postgres://ann:secret@one,two:5433/shop?schema=jobs&connect_timeout=1&sslmode=require"
    address = postgres_url.parse(url)
    assert address.schema == "jobs"
    assert address.conninfo.startswith("postgresql://ann:secret@one,two:5433/shop?")
    assert "connect_timeout=1&" in address.conninfo
    assert "sslmode=require" in address.conninfo
    assert "schema" not in address.conninfo


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:secret@127.0.0.1:1/shop",
        "postgresql://ann:sec@ret@127.0.0.1:1/shop",
        "postgresql://ann@127.0.0.1:1/shop?password=secret",
        "postgresql://127.0.0.1:1/shop?user=ann&sslpassword=secret&connect_timeout=3",
    ],
)
def test_a_server_that_is_not_there_is_named_without_its_password(url: str) -> None:
    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1.* cannot be reached") as caught:
        open_store(url, busy_s=0.1)
    assert "sec" not in str(caught.value)
