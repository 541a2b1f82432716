"""`rota templates`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.shell import Seed, Shell

BACKUP = {
    "name": "backup",
    "description": "of one host",
    "parameters": {"host": {"type": "string"}},
    "job": {"command": ["backup", {"$parameter": "host"}]},
}


def test_a_template_is_applied_shown_and_deleted(shell: Shell, seed: Seed, tmp_path: Path) -> None:
    assert shell("templates").err == "there are no templates yet\n"
    file = tmp_path / "backup.json"
    file.write_text(json.dumps(BACKUP))
    assert "backup is new" in shell.ok("templates", "apply", str(file)).err
    assert json.loads(shell.ok("templates", "show", "backup").out) == BACKUP
    file.write_text(json.dumps({**BACKUP, "description": "of a host"}))
    assert "has version 2" in shell.ok("templates", "apply", str(file)).err
    (row,) = shell.ok("templates", "--json").rows
    assert (row["name"], row["version"], row["description"]) == ("backup", 2, "of a host")
    shell.ok("templates", "delete", "backup")
    assert "no template 'backup'" in shell.refused("templates", "delete", "backup")
    assert "no template 'backup'" in shell.refused("templates", "show", "backup")


def test_a_file_that_is_wrong_is_refused(shell: Shell, seed: Seed, tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    for content, words in (
        ("{", "t.json"),
        (json.dumps({**BACKUP, "job": {}}), "has one of command"),
        (json.dumps({**BACKUP, "parameters": {}}), "uses a parameter 'host'"),
        (json.dumps({**BACKUP, "jobs": 1}), "did you mean job"),
    ):
        file.write_text(content)
        assert words in shell.refused("templates", "apply", str(file))
