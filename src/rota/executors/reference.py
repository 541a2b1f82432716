"""Secrets of jobs by reference: `{"env": "TOKEN"}` and `{"file": "/run/secrets/token"}` instead of the secret itself.

A definition is stored in the database and shown to people, so it only names where the secret is. The worker reads the
secret when an attempt begins, and masks it in the attempt's log and error.
"""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections.abc import Iterable, Mapping
from typing import TypeVar
from urllib.parse import quote

import msgspec

from rota.domain.errors import DefinitionError
from rota.domain.outcome import Error, Failed, GivenBack, Lost
from rota.domain.url import MASK

MOST_BYTES = 64 * 1024
SHORTEST = 4
"""A shorter secret is not masked: it would occur in many texts by chance."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
T = TypeVar("T")


class Missing(Exception):
    """A secret that this worker does not have. The message names the variable or file, never the content."""


class Reference(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where a worker finds a value: in a variable of its environment, or in a file. `prefix` is put before it."""

    env: str | None = None
    file: str | None = None
    prefix: str = ""

    def __post_init__(self) -> None:
        if (self.env is None) == (self.file is None):
            raise DefinitionError("a reference names one of env and file, such as {'env': 'TOKEN'}")
        if self.env is not None and not _VARIABLE.fullmatch(self.env):
            raise DefinitionError("the env of a reference must be the name of an environment variable")
        if self.file is not None and not self.file.startswith("/"):
            raise DefinitionError("the file of a reference must be an absolute path, such as /run/secrets/token")

    @property
    def shown(self) -> str:
        return f"the environment variable {self.env}" if self.env is not None else f"the file {self.file}"


Text = str | Reference


def texts(values: Iterable[Text]) -> list[str]:
    """The values that are literals."""
    return [value for value in values if isinstance(value, str)]


def references(values: Iterable[Text]) -> frozenset[Reference]:
    return frozenset(value for value in values if isinstance(value, Reference))


class Secrets:
    """The secrets of one attempt."""

    def __init__(self, values: Mapping[Reference, str]) -> None:
        self._values = values
        hidden = {form for value in values.values() for form in _forms(value) if len(form) >= SHORTEST}
        # The longest first: one secret may be a part of another.
        longest_first = sorted(hidden, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if hidden else None

    def __getitem__(self, reference: Reference) -> str:
        return reference.prefix + self._values[reference]

    def mask(self, text: str) -> str:
        """The text with `MASK` in place of each secret."""
        return text if self._pattern is None else self._pattern.sub(MASK, text)

    def mask_all(self, texts: list[str]) -> list[str]:
        return texts if self._pattern is None else [self.mask(text) for text in texts]

    def mask_error(self, outcome: T) -> T:
        """The outcome, with no secret in its error."""
        if isinstance(outcome, Failed | Lost | GivenBack) and outcome.error is not None and self._pattern is not None:
            error = outcome.error
            masked = Error(error.type, self.mask(error.message), self.mask(error.traceback))
            return msgspec.structs.replace(outcome, error=masked)
        return outcome


NO_SECRETS = Secrets({})


async def read(wanted: frozenset[Reference]) -> Secrets:
    """Reads the secrets from the environment and from files; raises Missing."""
    if not wanted:
        return NO_SECRETS
    if all(reference.file is None for reference in wanted):
        return Secrets({reference: _value(reference) for reference in wanted})
    # A file may be on a disk that does not answer, or be a pipe.
    return Secrets(await asyncio.to_thread(lambda: {reference: _value(reference) for reference in wanted}))


def _value(reference: Reference) -> str:
    value = os.environ.get(reference.env, "") if reference.env is not None else _content(reference)
    if not value:
        raise Missing(f"{reference.shown} is empty or not set on this worker")
    if "\0" in value:
        raise Missing(f"{reference.shown} holds a NUL character, which no value can have")
    return value


def _content(reference: Reference) -> str:
    assert reference.file is not None
    try:
        fd = os.open(reference.file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise Missing(f"{reference.shown} is not a plain file")
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise Missing(f"{reference.shown} cannot be read on this worker: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise Missing(f"{reference.shown} is longer than {MOST_BYTES:,} bytes")
    try:
        return data.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise Missing(f"{reference.shown} is not valid UTF-8") from None


def _forms(value: str) -> list[str]:
    """How a secret may appear in a line of text: whole, one of its lines, or percent-encoded."""
    return [value, quote(value, safe=""), *(line.strip() for line in value.splitlines())]
