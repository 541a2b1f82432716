"""Masked URLs: the password is never shown; other parts are, if they are certainly no secret."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.domain.url import masked, masked_text

SECRET = "s3cr"
special = st.text("aB9:/?#[]@!$&'()*+,;=%\\\"<>|~^`{} \t\n\u00e4\u20ac", max_size=8)
passwords = st.builds(lambda before, after: f"{before}{SECRET}{after}", special, special)
encoded = passwords.map(lambda password: quote(password, safe=""))
schemes = st.sampled_from(
    ["postgresql", "postgres", "POSTGRESQL", "Postgres", "postgresql+psycopg", "mysql", "redis", "amqp", "https", "x"]
) | st.sampled_from(["jdbc:postgresql", "sqlite", "SQLITE"])
spaces = st.sampled_from(["", " ", "\t", "\n", '"', "'", "\ufeff", " \u00a0"])
places = st.sampled_from(
    ["host/db", "host:5432/db?schema=rota", "a:1,b:2/db", "/db", "", "[::1]:5/db", "host", "%2Frun/db", "host/db#x"]
)


@given(spaces, schemes, st.sampled_from(["://", ":", ":/", "://///"]), passwords | encoded, places, spaces)
def test_a_password_before_the_host_is_never_shown(
    before: str, scheme: str, mark: str, password: str, place: str, after: str
) -> None:
    for user in ("", "ann", "ann%40corp"):
        assert SECRET not in masked(f"{before}{scheme}{mark}{user}:{password}@{place}{after}")


@given(
    spaces,
    schemes,
    st.sampled_from(["password", "PASSWORD", "%70assword", "sslpassword", "passwd", "oauth_client_secret"]),
    encoded,
    st.sampled_from(["", "&schema=rota", "&password=x", "&connect_timeout=3"]),
)
def test_a_password_among_the_options_is_never_shown(
    before: str, scheme: str, name: str, password: str, more: str
) -> None:
    for place in ("host/db?", "ann@host/db?sslmode=require&", "?", "/db?"):
        assert SECRET not in masked(f"{before}{scheme}://{place}{name}={password}{more}")


@given(
    st.sampled_from(["password", "PASSWORD", "sslpassword"]),
    st.sampled_from(["=", " = "]),
    passwords,
    st.sampled_from(["", " host=db", " dbname=shop port=5432"]),
)
def test_a_password_as_a_keyword_is_never_shown(name: str, equals: str, password: str, more: str) -> None:
    quoted = "".join(("'", password.replace("\\", "\\\\").replace("'", "\\'"), "'"))
    for value in (quoted, password, f"'{password}"):
        assert SECRET not in masked(f"user=ann {name}{equals}{value}{more}")
        assert SECRET not in masked(f"{name}{equals}{value}{more}")
    assert SECRET not in masked(f"dbname=postgresql://ann:{password}@host/db{more}")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:secret@host:5432/shop", "postgresql://ann:***@host:5432/shop"),
        ("postgresql://ann@host/shop", "postgresql://ann@host/shop"),
        ("postgresql+psycopg://ann:secret@host/shop", "postgresql+psycopg://ann:***@host/shop"),
        (" POSTGRESQL://ann:secret@host/shop ", "POSTGRESQL://ann:***@host/shop"),
        ("redis://:secret@host/1", "redis://***@host/1"),
        ("https://token@host", "https://***@host"),
        ("mysql://ann:se/cret@host", "mysql://…"),
        ("postgresql:ann:secret@host", "postgresql:…"),
        ("ann:secret@host/shop", "ann:…"),
        ('"postgresql://host/shop?password=secret"', "…"),
        ("host=db password=secret user=ann", "…"),
        ("postgresql://host/shop?passfile=/run/pass", "postgresql://host/shop?passfile=/run/pass"),
        ("sqlite:////data/ann@corp/rota.db", "sqlite:////data/ann@corp/rota.db"),
        ("sqlite:////folder/a:b.db", "sqlite:////folder/a:b.db"),
        ("sqlite:///file.db?password=secret", "sqlite:///file.db?password=***"),
        ("sqlite://:memory:", "sqlite://:memory:"),
        ("rota.db", "rota.db"),
        ("", ""),
    ],
)
def test_text_that_is_no_secret_is_shown(url: str, shown: str) -> None:
    assert masked(url) == shown
    assert masked(shown) == shown


def test_only_the_urls_in_a_message_are_masked() -> None:
    text = "Got unexpected extra arguments (postgresql+x://u:secret@h/d --json) and password=secret; see docs"
    assert masked_text(text) == (
        "Got unexpected extra arguments (postgresql+x://u:***@h/d --json) and password=*** see docs"
    )
    for plain in ("use postgresql://user:password@host:5432/database", "see https://example.org/a?b=c", "a@b.c", ""):
        assert masked_text(plain) == plain


def test_a_long_word_is_masked_in_linear_time() -> None:
    # In time that grows with the square of the length, this would take hours.
    word = "x" * 3_000_000
    assert masked_text(word) == word
    assert masked_text(f"{word}://u:secret@h/d {word}password=secret") == f"{word}://***@h/d {word}password=***"
