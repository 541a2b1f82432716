"""The machine, and a folder on a real disk for the measurement."""

from __future__ import annotations

import os
import platform
import tempfile
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parents[1]
_IN_MEMORY = {"tmpfs", "ramfs"}


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """What the figures depend on."""

    cores: int
    processor: str
    system: str
    python: str
    filesystem: str
    load_1m: float


def machine(folder: Path) -> Machine:
    return Machine(
        cores=len(os.sched_getaffinity(0)),
        processor=_processor(),
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        filesystem=filesystem(folder),
        load_1m=round(os.getloadavg()[0], 2),
    )


def disk_folder() -> Path:
    """The first of the usual folders for temporary files that is not in memory."""
    candidates = [Path(tempfile.gettempdir()), Path("/var/tmp"), ROOT / "build"]
    for folder in candidates:
        if folder.is_dir() and filesystem(folder) not in _IN_MEMORY:
            return folder
    candidates[-1].mkdir(exist_ok=True)
    return candidates[-1]


def filesystem(folder: Path) -> str:
    """The type of the file system that `folder` is on."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    holding = [mount for mount in mounts if folder.resolve().is_relative_to(mount[1].replace("\\040", " "))]
    return max(holding, key=lambda mount: len(mount[1]))[2] if holding else "unknown"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
