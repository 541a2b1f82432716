"""Workflows that are written to a file and imported, so that errors can name the file and the line."""

from __future__ import annotations

import importlib.util
import sys
import textwrap
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rota import App, WorkflowError

HEADER = """
from __future__ import annotations
import copy, json, os, random, statistics, uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from rota import App, Context
from rota.workflow import *

app = App("shop", url="sqlite://:memory:")

@dataclass
class Raw:
    files: list[str]
    rows: int
    note: str | None = None

@app.job
def extract(day: str) -> Raw: ...
@app.job
def check(raw: Raw) -> bool: ...
@app.job
def transform(file: str, bucket: str = "eu") -> int: ...
@app.job
async def load(parts: list[int], *, loud: bool = False) -> dict[str, int]: ...
@app.job
def pair(day: str) -> tuple[int, str]: ...
@app.job
def send(to: str, text: str = "") -> str: ...
@app.job
def unload(loaded: dict[str, int] | None, why: str = "") -> None: ...
@app.job
def needy(receipt: str, count: int) -> None: ...
@app.job
def unsend(receipt: str) -> None: ...
@app.job
def anything(value: Any) -> Any: ...
"""
_NUMBERS = count(1)


def module(folder: Path, source: str) -> ModuleType:
    """The header and the source as a module of its own."""
    name = f"written_{next(_NUMBERS)}"
    path = folder / f"{name}.py"
    path.write_text(HEADER + textwrap.dedent(source))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[name] = found  # Annotations are looked up there.
    spec.loader.exec_module(found)
    return found


def app_of(folder: Path, source: str) -> App:
    app = module(folder, source).app
    assert isinstance(app, App)
    return app


def flow(body: str, parameters: str = "day: str", options: str = "") -> str:
    """The source of a workflow `w` with this body."""
    lines = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    return f"\n@app.workflow{options}\ndef w({parameters}) -> Any:\n{lines}\n"


def built(folder: Path, body: str, parameters: str = "day: str", options: str = "") -> dict[str, Any]:
    """The data form of a workflow with this body."""
    return app_of(folder, flow(body, parameters, options)).workflows["w"].to_data()


def refused(folder: Path, body: str, parameters: str = "day: str", options: str = "") -> WorkflowError:
    """The error that the build raises."""
    app = app_of(folder, flow(body, parameters, options))
    with pytest.raises(WorkflowError) as caught:
        app.workflows["w"].graph()
    (first, *_) = app.workflows["w"].problems()
    assert (first.file, first.line) == (caught.value.file, caught.value.line)
    return caught.value
