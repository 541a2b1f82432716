"""`rota hooks`: make, list, rotate and delete inbound webhooks."""

from __future__ import annotations

from tests.cli.shell import Seed, Shell
from tests.support.tables import table


def test_a_hook_is_made_rotated_and_deleted(shell: Shell, seed: Seed) -> None:
    assert shell("hooks").err == "there are no hooks yet\n"
    made = shell.ok("hooks", "create", "pushes", "github.push", "--scheme", "github")
    path, secret = made.out.splitlines()
    assert path.startswith("/api/v1/in/")
    assert len(secret) == 64
    assert "not shown again" in made.err
    assert "there is a hook 'pushes'" in shell.refused("hooks", "create", "pushes", "x", code=1)
    (row,) = shell.ok("hooks", "--json").rows
    assert (row["name"], row["event"], row["scheme"], row["path"]) == ("pushes", "github.push", "github", path)
    assert secret not in shell.ok("hooks", "--json").out
    assert "X-GitHub-Delivery" in shell.ok("hooks").out
    same_path, new_secret = shell.ok("hooks", "rotate", "pushes").out.splitlines()
    assert (same_path, new_secret == secret) == (path, False)
    shell.ok("hooks", "delete", "pushes")
    assert "there is no hook 'pushes'" in shell.refused("hooks", "delete", "pushes")
    rows = table(seed.store, "audit")
    assert [row["action"] for row in rows] == ["hook.create", "hook.rotate", "hook.delete"]
    assert rows[0]["actor"].startswith("cli:")


def test_a_secret_of_the_sender_comes_from_a_file(shell: Shell, seed: Seed) -> None:
    (shell.folder / "secret").write_text("a secret of the sender\n")
    made = shell.ok("hooks", "create", "shop", "order.paid", "--scheme", "hmac", "--secret-file", "secret")
    assert made.out.splitlines()[1] == "a secret of the sender"
    refused = shell.refused("hooks", "create", "other", "order.paid", "--dedupe-pointer", "id")
    assert "JSON pointer" in refused
    assert "for the scheme hmac" in shell.refused("hooks", "create", "other", "e", "--signature-header", "X-A")
