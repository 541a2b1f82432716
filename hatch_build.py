"""Puts what the pages of the server need from npm into the package, when the package is built or installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILES = ("swagger-ui-bundle.js", "swagger-ui.css", "LICENSE", "NOTICE")


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        target = root / "src" / "rota" / "api" / "pages" / "swagger"
        if not (root / "ui" / "package-lock.json").is_file():
            return
        npm = shutil.which("npm")
        if npm is None:
            self.app.display_warning("npm was not found: the page /api/docs will be missing; install Node.js 20")
            return
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        done = subprocess.run(command, cwd=root / "ui", check=False)
        if done.returncode != 0:
            self.app.display_warning("npm could not install ui/: the page /api/docs will be missing")
            return
        target.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            shutil.copy(root / "ui" / "node_modules" / "swagger-ui-dist" / name, target / name)
