"""Finding the app that a command names as MODULE:APP, or as a file."""

from __future__ import annotations

import importlib
import os
import sys
import sysconfig
import traceback
from pathlib import Path

from rota.domain.errors import UsageError
from rota.domain.url import masked
from rota.sdk import file
from rota.sdk.app import App

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
    _search(str(Path.cwd()))
    module = _imported(module_name)
    found = getattr(module, attribute or "app", None)
    if isinstance(found, App):
        return found
    apps = sorted(name for name, value in vars(module).items() if isinstance(value, App))
    hint = f"it has {', '.join(apps)}" if apps else "it has no rota.App at all"
    raise UsageError(f"{module_name} has no app {attribute or 'app'!r}; {hint}")


def _search(folder: str) -> None:
    """Lets modules be imported from a folder: before installed packages, and after the standard library.

    A file `json.py` of the folder must not take the place of a module that Rota itself imports.
    """
    if folder in sys.path:
        return
    standard = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    standard |= {str(Path(path, "lib-dynload")) for path in standard}
    last = max((index for index, path in enumerate(sys.path) if path in standard), default=-1)
    sys.path.insert(last + 1, folder)


def from_command_line(url_is_set: bool, namespace: str | None) -> tuple[str | None, str | None]:
    """The database and the namespace that the operator gave on the command line, each None if not given.

    Sets ROTA_NAMESPACE, because the app reads its settings from the environment. The URL is in ROTA_URL already: it may
    hold a password, and every user of the machine can read the arguments of a process.
    """
    if namespace is not None:
        os.environ["ROTA_NAMESPACE"] = namespace
    return os.environ["ROTA_URL"] if url_is_set else None, namespace


def agree(app: App, url: str | None, namespace: str | None) -> None:
    """Refuses an app whose own code names another database or namespace than the command line or the worker."""
    for name, said, own in (("url", url, app.settings.url), ("namespace", namespace, app.settings.namespace)):
        if said is not None and said != own:
            said, own = (masked(said), masked(own)) if name == "url" else (said, own)
            raise UsageError(
                f"app {app.name!r} has {name}={own!r} in its code, but the command says {said!r}: "
                f"use --{name} {own}, or leave {name} out of the code"
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
