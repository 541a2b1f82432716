"""Settings: read once from `rota.toml` and the environment, validated once, then passed around as a value."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from rota.domain import headcount, names
from rota.domain.decoding import prepare
from rota.domain.errors import DefinitionError
from rota.domain.url import MASK, masked

DEFAULT_URL = "sqlite:///rota.db"
FILE = "rota.toml"
_URLS = {"url", "listen_url"}
_SECRET = {*_URLS, "token"}
_LISTS = {"allowed_hosts", "cors_origins", "trusted_proxies"}
"""Settings whose values are separated by commas in the environment."""
_TOKEN = re.compile(r"[!-~]+")
_ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?|https?://\[[0-9a-f:]+\](:[0-9]{1,5})?")
_NO_SETTINGS = {
    "ROTA_CALLBACK_SECRET",
    "ROTA_DUMPABLE",
    "ROTA_HTTP_ALLOW",
    *(f"ROTA_{name}" for name in ("EXECUTION_ID", "JOB", "ATTEMPT", "FENCE", "DEADLINE")),
}
"""Variables that Rota itself reads, or sets for commands."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every setting, its default and its bounds. `ROTA_NAME` in the environment overrides the file."""

    url: str = DEFAULT_URL
    listen_url: str | None = None
    """A direct PostgreSQL URL for wake-ups, if `url` leads through a pooler."""
    token: str | None = None
    """The token by which an app reaches a server, if `url` is that of one."""
    namespace: str = "default"
    lease_s: float = 10.0
    """How long a worker may hold its executions without a heartbeat."""
    poll_s: float = 2.0
    """How often an idle loop polls for work, in case a wake-up was lost."""
    concurrency: int = 100
    """Executions that one worker process runs at once."""
    processes: int | str = 1
    """Worker processes under one supervisor: a number, or a range such as 2-8."""
    quiet_s: float = 30.0
    """How long a worker with a range of processes keeps an idle one."""
    grace_s: float = 30.0
    """How long a draining worker lets its executions finish."""
    busy_s: float = 30.0
    """How long a call waits for a busy database before it gives up."""
    isolated_processes: int = 0
    """Processes for jobs with `isolation="process"` in each worker process; 0 is one per core, and at least two."""
    recycle_jobs: int = 10_000
    """A process for jobs with `isolation="process"` is replaced after this many jobs,"""
    recycle_s: float = 3600.0
    """… at this age,"""
    recycle_bytes: int = 512 * 1024 * 1024
    """… or when it holds this much memory after a job."""
    max_payload_bytes: int = 1024 * 1024
    """The most bytes of JSON for the arguments of one execution, and for the payload of one event."""
    max_result_bytes: int = 16 * 1024 * 1024
    """The most bytes of JSON for the result of one execution."""
    max_log_bytes: int = 16 * 1024 * 1024
    """The most that is kept of the log of one attempt: 100,000 lines of 120 characters."""
    retention_days: int = 30
    """How many days ended executions are kept, unless their namespace has its own retention; 0 means forever."""
    allowed_hosts: tuple[str, ...] = ()
    """The names by which clients may call a server that has tokens; none means any name."""
    public_url: str | None = None
    """The origin of the server as browsers see it, if a proxy is in front of it."""
    cors_origins: tuple[str, ...] = ()
    """Other origins whose pages may call a server with a token."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses whose header X-Forwarded-For a server believes; `local` is its Unix socket."""

    def __repr__(self) -> str:
        values = msgspec.structs.asdict(self)
        values |= {name: masked(values[name]) for name in _URLS if values[name] is not None}
        values["token"] = None if self.token is None else MASK
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in values.items())})"


prepare(Settings)
_BOUNDS: dict[str, tuple[float, float]] = {
    "lease_s": (0.2, 3600),
    "poll_s": (0.01, 60),
    "concurrency": (1, 10_000),
    "processes": (headcount.LEAST, headcount.MOST),
    "quiet_s": (0.1, 3600),
    "grace_s": (0, 86_400),
    "busy_s": (0.1, 3600),
    "isolated_processes": (0, 1000),
    "recycle_jobs": (1, 1_000_000_000),
    "recycle_s": (1, 31_536_000),
    "recycle_bytes": (1024 * 1024, 1_099_511_627_776),
    "max_payload_bytes": (1024, 64 * 1024 * 1024),
    "max_result_bytes": (1024, 64 * 1024 * 1024),
    "max_log_bytes": (1024 * 1024, 256 * 1024 * 1024),
    "retention_days": (0, 36_500),
}


def load(environ: Mapping[str, str] | None = None, folder: Path | None = None, **overrides: Any) -> Settings:
    """The settings in force: defaults, then `rota.toml`, then the environment, then `overrides` that are not None."""
    environ = os.environ if environ is None else environ
    values = _file((folder or Path.cwd()) / FILE)
    for field in Settings.__struct_fields__:
        if text := environ.get(f"ROTA_{field.upper()}"):
            values[field] = [part.strip() for part in text.split(",")] if field in _LISTS else text
    values.update({name: value for name, value in overrides.items() if value is not None})
    return _validated(values)


def is_given(name: str, environ: Mapping[str, str] | None = None, folder: Path | None = None) -> bool:
    """Whether `rota.toml` or the environment has this setting."""
    environ = os.environ if environ is None else environ
    return bool(environ.get(f"ROTA_{name.upper()}")) or name in _file((folder or Path.cwd()) / FILE)


def unknown_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables that look like settings but are none, each with the most similar setting, or nothing."""
    settings = [f"ROTA_{field.upper()}" for field in Settings.__struct_fields__]
    found = sorted(name for name in environ if name.startswith("ROTA_") and not name.startswith("ROTA_TEST"))
    unknown = [name for name in found if name not in settings and name not in _NO_SETTINGS]
    return {name: next(iter(get_close_matches(name, settings, 1, 0.8)), "") for name in unknown}


def _file(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    import tomllib  # lazy: few processes find a file

    try:
        return tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DefinitionError(f"{path.name} is not valid TOML: {error}") from None


def _validated(values: dict[str, Any]) -> Settings:
    try:
        settings = msgspec.convert(values, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise DefinitionError(_readable(str(error), values)) from None
    names.check(settings.namespace, "the setting namespace")
    headcount.parse(settings.processes, "the setting processes")
    if settings.token is not None and not _TOKEN.fullmatch(settings.token):
        raise DefinitionError("the setting token must be a token as it was shown, without spaces or line breaks")
    for field, origins in (("public_url", [settings.public_url]), ("cors_origins", settings.cors_origins)):
        for origin in origins:
            if origin is not None and not _ORIGIN.fullmatch(origin):
                words = "an origin in lower case, such as https://rota.example.org, without a path"
                raise DefinitionError(f"the setting {field} must be {words}, not {origin!r}")
    for field, (low, high) in _BOUNDS.items():
        value = getattr(settings, field)
        if isinstance(value, str):
            continue  # A range: `headcount.parse` has checked its ends.
        if not low <= value <= high:
            raise DefinitionError(
                f"the setting {field} must be between {_words(low)} and {_words(high)}, not {_words(value)}"
            )
    return settings


def _words(number: float) -> str:
    return f"{number:,.0f}" if float(number).is_integer() else f"{number:,}"


def _readable(message: str, values: dict[str, Any]) -> str:
    """msgspec's message with the setting, its value and where it comes from."""
    field = message.rpartition("$.")[2].rstrip("`")
    if field not in values:
        return f"settings: {message} (from {FILE} or ROTA_… in the environment)"
    # A malformed URL or token may be a secret, too.
    value = f"a {type(values[field]).__name__}" if field in _SECRET else repr(values[field])
    kinds = {"processes": "a number or a range such as 2-8"} | dict.fromkeys(_LISTS, "a list of texts")
    kind = kinds.get(field, Settings.__annotations__[field])
    return f"the setting {field} ({FILE} or ROTA_{field.upper()}) must be {kind}, not {value}"
