"""The text of a token: a prefix that scanners for leaked secrets know, 256 random bits, and a checksum.

    rota_ + 43 characters of base 62 + 6 of the CRC-32 of what stands before them

A mistyped token fails the checksum and costs no look-up. The database has only the SHA-256 of the text.
"""

from __future__ import annotations

import hashlib
import re
import zlib

PREFIX = "rota_"
WORKER_PREFIX = "rotaw_"
SECRET_BITS = 256
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SECRET, _SUM = 43, 6
_FORM = re.compile(rf"rotaw?_[0-9A-Za-z]{{{_SECRET + _SUM}}}", re.ASCII)


def written(bits: int, prefix: str = PREFIX) -> str:
    """The token with these random bits."""
    text = prefix + _base62(bits, _SECRET)
    return text + _checksum(text)


def is_token(text: str) -> bool:
    """Whether the text has the form of a token and the right checksum."""
    return _FORM.fullmatch(text) is not None and _checksum(text[:-_SUM]) == text[-_SUM:]


def digest(text: str) -> str:
    """The hash under which a token or a session is stored."""
    return hashlib.sha256(text.encode()).hexdigest()


def _checksum(text: str) -> str:
    return _base62(zlib.crc32(text.encode()), _SUM)


def _base62(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, rest = divmod(number, 62)
        digits.append(_ALPHABET[rest])
    return "".join(reversed(digits))
