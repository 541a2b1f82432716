"""An app that is a file: commands and requests as data, without a line of Python.

app = "ops"

[jobs.report]
command = ["python", "report.py", "{month}"]
timeout = "1h"

[jobs.ping]
http = "https://example.com/health"
method = "GET"
every = "5m"
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from rota.domain.errors import DefinitionError, UsageError
from rota.sdk.app import App

SUFFIX = ".toml"
_TOP = ("app", "breakers", "queues", "jobs")
_KINDS = ("command", "http", "kind")


def read(path: Path) -> App:
    """The app that a file describes. A DefinitionError names the file and the job that are wrong."""
    import tomllib  # lazy: few apps are files

    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DefinitionError(f"{path.name} is not valid TOML: {error}") from None
    except OSError as error:
        raise DefinitionError(f"{path} cannot be read: {error.strerror}") from None
    try:
        return app(data, path.stem)
    except DefinitionError as error:
        raise DefinitionError(f"{path.name}: {error}") from None


def app(data: Mapping[str, Any], name: str) -> App:
    """An app from data; `name` is its name if the data has none."""
    if unknown := sorted(data.keys() - set(_TOP)):
        raise DefinitionError(f"there is no {unknown[0]!r}: it may have {', '.join(_TOP)}")
    made = App(data.get("app", name))
    _each(data, "breakers", made.breaker)
    _each(data, "queues", made.queue)
    _each(data, "jobs", lambda job, /, **about: _declare(made, job, about))
    if not made.jobs:
        raise DefinitionError('it has no jobs: write [jobs.NAME] and command = ["PROGRAM", "ARGUMENT"] below it')
    made.check()
    return made


def _each(data: Mapping[str, Any], what: str, declare: Callable[..., None]) -> None:
    named = data.get(what, {})
    if not isinstance(named, dict) or not all(isinstance(about, dict) for about in named.values()):
        raise DefinitionError(f"{what}: write [{what}.NAME] and the options below it")
    for name, about in named.items():
        try:
            _check_options(declare, about)
            declare(name, **about)
        except (UsageError, TypeError) as error:
            raise DefinitionError(f"[{what}.{name}]: {error}") from None


def _declare(made: App, name: str, about: dict[str, Any]) -> None:
    kinds = [kind for kind in _KINDS if kind in about]
    if len(kinds) != 1:
        raise DefinitionError(f"a job has one of {', '.join(_KINDS)}, not {', '.join(kinds) or 'none of them'}")
    what = about.pop(kinds[0])
    match kinds[0]:
        case "command":
            if not isinstance(what, list) or not all(isinstance(word, str | dict) for word in what):
                raise DefinitionError('command must be a list of texts, such as ["python", "report.py"]')
            made.command(name, what, **about)
        case "http":
            made.http(name, what, **about)
        case _:
            made.run_by(what, name, **about)


def _check_options(declare: Callable[..., None], about: Mapping[str, Any]) -> None:
    """Refuses options that are unknown where all of them are known."""
    parameters = inspect.signature(declare).parameters.values()
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return
    known = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
    if unknown := sorted(about.keys() - set(known)):
        near = get_close_matches(unknown[0], known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"it may have {', '.join(known)}"
        raise DefinitionError(f"there is no option {unknown[0]!r}: {hint}")
