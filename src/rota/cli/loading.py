"""Finding the app that a command names as MODULE:APP, or as a file."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from pathlib import Path

from rota.domain.errors import UsageError
from rota.sdk import file
from rota.sdk.app import App
from rota.store.postgres_url import shown

ROTA = f"{Path(__file__).resolve().parents[1]}{os.sep}"
"""Where the code of Rota is."""


def load_app(reference: str) -> App:
    """Imports `package.module:attribute` from the current folder or the installed packages, or reads `jobs.toml`."""
    if reference.endswith(file.SUFFIX):
        return file.read(Path(reference))
    module_name, _, attribute = reference.partition(":")
    if not all(part.isidentifier() for part in module_name.split(".")):
        raise UsageError(
            f"an app is named as MODULE:APP, for example shop:app, or as a file of jobs, jobs.toml; not {reference!r}"
        )
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module = _imported(module_name)
    found = getattr(module, attribute or "app", None)
    if isinstance(found, App):
        return found
    apps = sorted(name for name, value in vars(module).items() if isinstance(value, App))
    hint = f"it has {', '.join(apps)}" if apps else "it has no rota.App at all"
    raise UsageError(f"{module_name} has no app {attribute or 'app'!r}; {hint}")


def agree(app: App, url: str | None, namespace: str | None) -> None:
    """Refuses an app whose own code names another database or namespace than the command line or the worker."""
    for name, said, own in (("url", url, app.settings.url), ("namespace", namespace, app.settings.namespace)):
        if said is not None and said != own:
            raise UsageError(
                f"app {app.name!r} has {name}={shown(own)!r} in its code, but the command says {shown(said)!r}: "
                f"use --{name} {shown(own)}, or leave {name} out of the code"
            )


def _imported(name: str) -> object:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise UsageError(f"there is no module {name!r} in this folder or among the installed packages") from None
        raise UsageError(f"{name} could not be imported: {error}{_where(error)}") from error
    except SystemExit as error:
        raise UsageError(f"{name} could not be imported: it ends the program{_where(error)}") from error
    except Exception as error:
        raise UsageError(f"{name} could not be imported: {type(error).__name__}: {error}{_where(error)}") from error


def _where(error: BaseException) -> str:
    """The line of the user's code at which the import stopped."""
    if isinstance(error, SyntaxError):
        return ""  # Its message says so itself.
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen")]
    own = [frame for frame in frames if not frame.filename.startswith(ROTA) and "importlib" not in frame.filename]
    return f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""
