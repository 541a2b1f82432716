"""JSON from outside: what readers of JSON understand differently is refused, with its place."""

from __future__ import annotations

import pytest

from rota.domain.strict_json import BadJson, check


@pytest.mark.parametrize(
    ("text", "pointer", "words"),
    [
        (b"[" * 100_000, "", "nested deeper"),
        (b'{"a":' * 100_000, "", "nested deeper"),
        (b'{"a": [1, ' + b"1" * 5000 + b"]}", "/a/1", "digits"),
        (b'{"a": 1e100000}', "/a", "1e100000"),
        (b'{"a": 1e-16000}', "/a", "1e-16000"),
        (b'{"a": 1e309}', "/a", "1e309"),
        (b'{"a": 1, "a": 2}', "/a", "twice"),
        (b'{"b": [{"a": 1, "\\u0061": 2}]}', "/b/0/a", "twice"),
        (b'{"a": "\\ud800"}', "/a", "surrogate"),
        (b'{"a": {"b\\u0000": 1}}', "/a", "NUL"),
        (b'{"x~/": "\\u0000"}', "/x~0~1", "NUL"),
        (b'{"a": NaN}', "/a", "NaN"),
        (b"[-Infinity]", "/0", "-Infinity"),
        (b"{} x", "", "extra data"),
        (b'{"a": 1, "a": 2} x', "", "extra data"),
        (b'{"b": [NaN], "a": ', "", "expecting value"),
        (b"", "", "expecting value"),
        (b"\xef\xbb\xbf{}", "", "byte order mark"),
        (b'"\xff"', "", "not UTF-8"),
        (b'"a\x00b"', "", "control character"),
    ],
    ids=lambda value: value[:12].decode("latin-1") if isinstance(value, bytes) else "",
)
def test_refuses(text: bytes, pointer: str, words: str) -> None:
    with pytest.raises(BadJson) as refused:
        check(text)
    assert refused.value.pointer == pointer
    assert words in refused.value.detail


@pytest.mark.parametrize(
    "text",
    [
        b"{}",
        b"null",
        b"1.10",
        b"-0",
        '["ä", "\\u00e4", "\\ud83d\\ude00"]'.encode(),
        b"1" * 4300,
        b"[" * 200 + b"]" * 200,
        b'"' + b"[" * 1000 + b'"',
        b'{"a": 1, "A": 2}',
    ],
    ids=lambda text: text[:12].decode(),
)
def test_accepts(text: bytes) -> None:
    check(text)
