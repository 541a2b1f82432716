"""The database that a command works on: found from `--url`, the environment or `rota.toml`, opened when needed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import click

from rota.clock import SystemClock

if TYPE_CHECKING:
    from rota.config import Settings
    from rota.store.opening import ReadOnly
    from rota.store.port import Store, Tx, View

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., object])


class Database:
    """Reads change nothing, not even the schema; neither reads nor writes create the database."""

    def __init__(self, **given: Any) -> None:
        self.given = given
        """The url and the namespace, as far as the command line names them."""
        self.clock = SystemClock()
        self._closing = contextlib.ExitStack()

    @cached_property
    def settings(self) -> Settings:
        from rota import config

        return config.load(**self.given)

    @property
    def namespace(self) -> str:
        return self.settings.namespace

    @cached_property
    def actor(self) -> str:
        """The user of this process, for the audit trail: by the uid, because LOGNAME can be set to any name."""
        import pwd

        from rota.domain import payload

        uid = os.geteuid()
        try:
            return payload.clean(f"cli:{pwd.getpwuid(uid).pw_name}", 80)
        except KeyError:
            return f"cli:uid:{uid}"

    def read(self, query: Callable[Concatenate[View, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return self._reader.read(query, *args, **kwargs)

    def transact(self, op: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return self.store.transact(op, *args, **kwargs)

    @cached_property
    def store(self) -> Store:
        """The store for writing. Opening would create or migrate it, so the reader checks the database first."""
        from rota.store.opening import open_store

        _ = self._reader
        settings = self.settings
        store = open_store(
            settings.url, self.clock, busy_s=settings.busy_s, listen_url=settings.listen_url, purpose="cli"
        )
        self._closing.callback(store.close)
        return store

    def close(self) -> None:
        self._closing.close()

    def hang_up(self) -> None:
        """Closes the connection for reads; the next read opens a new one."""
        reader = self.__dict__.pop("_reader", None)
        if reader is not None:
            reader.close()

    def export(self) -> None:
        """Puts the url and the namespace of the command line into the environment, where apps read their settings."""
        os.environ.update({f"ROTA_{name.upper()}": value for name, value in self.given.items()})

    @cached_property
    def _reader(self) -> ReadOnly:
        from rota.store.opening import open_reader

        reader = open_reader(self.settings.url, self.clock)
        self._closing.callback(reader.close)
        return reader


def url_options(*, hidden: bool) -> Callable[[F], F]:
    """`--url` and `--namespace`: shown once by `rota --help`, understood after every command too."""

    def keep(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
        if value is not None and parameter.name is not None:
            context.ensure_object(Database).given[parameter.name] = value

    def decorate(function: F) -> F:
        for flag, name, words in (
            ("--namespace", "NAME", "The namespace to work in (default: ROTA_NAMESPACE, or default)."),
            ("--url", "URL", "The database (default: ROTA_URL, or sqlite:///rota.db in this folder)."),
        ):
            option = click.option(
                flag, metavar=name, help=words, hidden=hidden, expose_value=False, is_eager=True, callback=keep
            )
            function = option(function)
        return function

    return decorate


def with_database(function: F) -> F:
    """Gives a command the database as its first argument."""
    wrapped = click.make_pass_decorator(Database, ensure=True)(function)
    return url_options(hidden=True)(wrapped)  # type: ignore[return-value]
