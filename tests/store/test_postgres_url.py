"""URLs of PostgreSQL: errors are clear, and never show the password."""

from __future__ import annotations

import pytest
from psycopg.conninfo import conninfo_to_dict

from rota.domain.errors import DefinitionError, StoreUnavailable
from rota.domain.url import masked
from rota.store.opening import open_store
from rota.store.postgres import url as postgres_url


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://host/database?schema=Not-Fine", "schema='Not-Fine'.*small letters, digits and _"),
        ("postgresql://host/database?schema=", "schema=''"),
        ("postgresql://host/database?nonsense", "cannot be read.*postgresql://user:password@host:5432/database"),
        ("postgresql://[half/database", "cannot be read.*postgresql://user:password@host:5432/database"),
        ("postgresql://host/data%zzbase", "cannot be read.*postgresql://user:password@host:5432/database"),
        ("postgresql://host/database?no_such_option=1", "no_such_option.*postgresql://user:password@host"),
        ("postgresql://host/database?schema=information_schema", "PostgreSQL's own; use another name"),
        ("postgresql://host/database?schema=pg_jobs", "PostgreSQL's own; use another name"),
        ("postgresql:a", "cannot be read: use postgresql://user:password@host:5432/database"),
        ("postgresql:", "cannot be read: use postgresql://user:password@host:5432/database"),
    ],
)
def test_a_malformed_url_is_refused_with_a_clear_error(url: str, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        open_store(url)


def test_a_url_may_contain_every_libpq_option() -> None:
    url = "postgres://ann:secret@one,two:5433/shop?schema=jobs&connect_timeout=1&sslmode=require"
    address = postgres_url.parse(url)
    assert address.schema == "jobs"
    assert address.conninfo.startswith("postgresql://ann:secret@one,two:5433/shop?")
    assert "connect_timeout=1&" in address.conninfo
    assert "sslmode=require" in address.conninfo
    assert "schema" not in address.conninfo


@pytest.mark.parametrize("pair", ["client_encoding=UTF-8", "client_encoding=latin1", "client%5fencoding=sql_ascii"])
def test_the_client_encoding_in_a_url_is_ignored(pair: str) -> None:
    conninfo = postgres_url.parse(f"postgresql://host/shop?{pair}").conninfo
    assert conninfo.endswith("client_encoding=utf8")
    assert conninfo.count("encoding") == 1


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:se?cret@host/shop", "postgresql://ann:***@host/shop"),
        ("postgresql://ann:se?cret@host/shop?schema=jobs", "postgresql://ann:***@host/shop?schema=jobs"),
        (
            "postgresql://ann@host/shop?password=se@cret&schema=jobs",
            "postgresql://ann@host/shop?password=***&schema=jobs",
        ),
        ("postgresql://host/shop?%70assword=secret", "postgresql://host/shop?password=***"),
        ("postgresql://host:5432/shop?user=ann@corp", "postgresql://host:5432/shop?user=ann@corp"),
    ],
)
def test_secrets_in_a_url_are_masked_and_the_rest_is_shown(url: str, shown: str) -> None:
    assert postgres_url.parse(url).shown == shown
    assert shown in repr(postgres_url.parse(url))
    assert "secret" not in repr(postgres_url.parse(url))


def test_a_password_with_a_question_mark_is_read_as_libpq_reads_it() -> None:
    address = postgres_url.parse("postgresql://ann:se?cret@host/shop?schema=jobs")
    known = conninfo_to_dict(address.conninfo)
    assert (known["password"], known["host"], known["dbname"]) == ("se?cret", "host", "shop")
    assert address.schema == "jobs"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:sec@ret@127.0.0.1:1/shop",
        "postgresql://ann:sec/ret@127.0.0.1:1/shop",
        "postgresql://ann:12/sec@127.0.0.1:1/shop",
        "postgresql://ann:12/sec?ret@127.0.0.1:1/shop",
        "postgresql://ann:12/sec?ret=x@127.0.0.1:1/shop",
        "postgresql://ann:12?sec/ret@127.0.0.1:1/shop",
        "postgresql://127.0.0.1?user=ann&password=sec@ret",
        'postgresql://ann:x"sec"%zz@127.0.0.1:1/shop',
    ],
)
def test_an_ambiguous_url_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(DefinitionError, match="cannot be read") as caught:
        open_store(url)
    assert "sec" not in str(caught.value) + masked(url)
    assert "ret" not in str(caught.value).replace("secret", "") + masked(url)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:secret@127.0.0.1:1/shop",
        "postgresql://ann:sec?ret@127.0.0.1:1/shop",
        "postgresql://ann@127.0.0.1:1/shop?password=secret",
        "postgresql://127.0.0.1:1/shop?user=ann&sslpassword=secret&connect_timeout=3",
    ],
)
def test_the_error_for_an_unreachable_server_does_not_show_the_password(url: str) -> None:
    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1.* cannot be reached") as caught:
        open_store(url, busy_s=0.1)
    assert "sec" not in str(caught.value)
