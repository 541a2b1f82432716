"""Puts the pages of the server into the package, when the package is built or installed."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        builder = Path(self.root) / "ui" / "build.py"
        if builder.is_file():
            runpy.run_path(str(builder))["build"](self.app.display_warning)
