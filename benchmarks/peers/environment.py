"""The environments that the peers are installed in, separate from Rota's."""

from __future__ import annotations

import subprocess
from pathlib import Path

from benchmarks.place import ROOT

PEERS, PREFECT = "peers", "prefect"
INSTALL_S = 300


def install(environment: str = PEERS) -> str:
    """Makes an environment if need be; returns why that was not possible, or nothing."""
    try:
        subprocess.run([Path(__file__).with_name("install"), environment], check=True, timeout=INSTALL_S)
    except (OSError, subprocess.SubprocessError) as error:
        return f"could not be installed ({error})"
    return ""


def program(environment: str, name: str) -> str:
    """Where a program of an environment is."""
    return str(ROOT / f".venv-{environment}" / "bin" / name)


def versions(environment: str, packages: list[str]) -> str:
    code = f"import importlib.metadata as m; print(*(f'{{n}} {{m.version(n)}}' for n in {packages}), sep=', ')"
    command = [program(environment, "python"), "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
