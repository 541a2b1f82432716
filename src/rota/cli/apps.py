"""Loads the app that a command names as MODULE:APP, or as a file of jobs."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import sysconfig
import traceback
from collections.abc import Mapping
from pathlib import Path

from rota import config
from rota.domain.errors import UsageError
from rota.domain.served import ALL_APPS
from rota.domain.url import masked
from rota.sdk import file
from rota.sdk.app import App, registry_of
from rota.sdk.data_worker import DataRegistry
from rota.sdk.registry import Registry

ROTA = f"{Path(__file__).resolve().parents[1]}{os.sep}"
"""The folder of Rota's own code."""


def load_app(reference: str) -> Registry:
    """The inside of the app that `import_app` finds."""
    return registry_of(import_app(reference))


def import_app(reference: str) -> App:
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


def process_arguments() -> argparse.ArgumentParser:
    """The arguments of the processes that load an app for a worker."""
    parser = argparse.ArgumentParser()
    parser.add_argument("app")
    parser.add_argument("--given", action="append", default=[], help="url or namespace, if the operator gave it")
    parser.add_argument("--log-level", default="INFO")
    parser.add_argument("--also", action="append", default=[], help="a further namespace to serve")
    parser.add_argument("--directory", help="where commands run that name no directory")
    return parser


def load_for_worker(arguments: argparse.Namespace) -> Registry:
    """Loads the app, whose settings come from the environment: the supervisor exports those that the operator gave.

    They are not arguments, because a URL may hold a password, and every user of the machine can read the arguments of
    a process.
    """
    if arguments.app == ALL_APPS:
        return DataRegistry(config.load(), arguments.directory)
    app = load_app(arguments.app)
    agree(app, {name: os.environ[f"ROTA_{name.upper()}"] for name in arguments.given})
    return app


def agree(app: Registry, given: Mapping[str, str]) -> None:
    """Refuses an app whose own code names another database or namespace than the operator gave."""
    for name, value in given.items():
        own = getattr(app.settings, name)
        if value != own:
            value, own = (masked(value), masked(own)) if name == "url" else (value, own)
            raise UsageError(
                f"app {app.name!r} has {name}={own!r} in its code, but the command says {value!r}: "
                f"use --{name} {own}, or leave {name} out of the code"
            )


def _imported(name: str) -> object:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing is not None and (name == missing or name.startswith(missing + ".")):
            raise UsageError(
                f"there is no module {name!r} in this folder or among the installed packages: check its name, "
                "or start the command in the folder that has it"
            ) from None
        cause = "it ends the program" if isinstance(error, SystemExit) else f"{type(error).__name__}: {error}"
        raise UsageError(f"{name} could not be imported: {cause}{_where(error)}") from error


def _where(error: BaseException) -> str:
    """The line of the user's code at which the import stopped."""
    if isinstance(error, SyntaxError):
        return ""  # Its message names the line.
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen")]
    own = [frame for frame in frames if not frame.filename.startswith(ROTA) and "importlib" not in frame.filename]
    return f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""
