"""What is shown of a job's target: references and placeholders, but no literal that may be a secret."""

from __future__ import annotations

from typing import Any

import pytest

from rota.domain.masking import masked, words

TOKEN = {"env": "TOKEN", "prefix": "Bearer "}


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (["report", "--month", "5"], ["report", "--month", "5"]),
        (["db", "--password", "x", "y"], ["db", "--password", "***", "y"]),
        (["db", "--password=x=y", "z"], ["db", "--password=***", "z"]),
        (["db", "--DB-Token", "{token}"], ["db", "--DB-Token", "{token}"]),
        (["db", "--token", TOKEN], ["db", "--token", TOKEN]),
        (["db", "--token", "a{token}"], ["db", "--token", "***"]),
        (["env", "PGPASSWORD=x", "MODE=full", "psql"], ["env", "PGPASSWORD=***", "MODE=full", "psql"]),
        (["curl", "-H", "Authorization: Bearer x"], ["curl", "-H", "Authorization: ***"]),
        (["psql", "postgresql://u:p@h:5/d?a=b"], ["psql", "postgresql://u:***@h:5/d?a=b"]),
        (["a", "--tokenizer", "b", "--bypass", "c"], ["a", "--tokenizer", "b", "--bypass", "c"]),
        (["a", "https://example.com/x:y", "--", "{files*}"], ["a", "https://example.com/x:y", "--", "{files*}"]),
    ],
)
def test_words_that_are_named_as_secrets_are_masked(argv: list[Any], shown: list[Any]) -> None:
    assert words(argv) == shown


def test_every_literal_variable_is_masked() -> None:
    environment = {"MODE": "full", "FROM": "{place}", "TOKEN": TOKEN, "EMPTY": ""}
    target = {"kind": "command", "argv": ["x"], "environment": environment, "result": "text"}
    assert masked(target) == {**target, "environment": {**environment, "MODE": "***"}}


def test_headers_and_queries_are_masked() -> None:
    target = {
        "kind": "http",
        "url": "https://example.com/{a}?key=x&b={b}&c",
        "headers": {"X-Anything": "x", "Accept": "text/csv", "Authorization": TOKEN, "X-Trace": "{trace}"},
        "query": {"key": "x", "page": "{page}", "token": {"file": "/run/secrets/x"}},
        "method": "GET",
    }
    assert masked(target) == {
        **target,
        "url": "https://example.com/{a}?key=***&b={b}&c",
        "headers": {**target["headers"], "X-Anything": "***"},  # type: ignore[dict-item]
        "query": {**target["query"], "key": "***"},  # type: ignore[dict-item]
    }


def test_literals_of_other_executors_are_masked_by_their_names() -> None:
    target = {"kind": "shout", "image": "small", "login": {"user": "ann", "password": "x"}, "api_key": ["y", "{z}"]}
    login = {"user": "ann", "password": "***"}
    assert masked(target) == {"kind": "shout", "image": "small", "login": login, "api_key": ["***", "{z}"]}
    assert masked({}) == {}
