"""`rota tokens` and `rota audit`."""

from __future__ import annotations

from tests.cli.shell import Seed, Shell


def test_a_token_is_made_rotated_and_revoked(shell: Shell, seed: Seed) -> None:
    assert shell("tokens").err == "there are no tokens yet\n"
    made = shell.ok("tokens", "create", "deploys", "--role", "operator", "--expires", "30d")
    assert made.out.startswith("rota_")
    assert "not shown again" in made.err
    assert "is a token 'deploys'" in shell.refused("tokens", "create", "deploys", "--role", "viewer", code=1)
    (row,) = shell.ok("tokens", "--json").rows
    assert (row["name"], row["state"], row["role"], row["ending"]) == (
        "deploys",
        "active",
        "operator",
        made.out.strip()[-4:],
    )
    rotated = shell.ok("tokens", "rotate", "deploys").out
    assert rotated.startswith("rota_")
    assert rotated != made.out
    shell.ok("tokens", "revoke", "deploys")
    assert "no token 'deploys'" in shell.refused("tokens", "revoke", "deploys")
    assert shell.ok("tokens", "create", "deploys", "--scope", "read").out.startswith("rota_")


def test_a_token_needs_a_role_or_scopes(shell: Shell, seed: Seed) -> None:
    assert "a role or scopes" in shell.refused("tokens", "create", "x")
    assert "a role or scopes" in shell.refused("tokens", "create", "x", "--role", "viewer", "--scope", "read")


def test_changes_are_in_the_audit_trail_without_secrets(shell: Shell, seed: Seed) -> None:
    assert shell("audit").err == "no change is recorded\n"
    secret = shell.ok("tokens", "create", "deploys", "--role", "operator").out.strip()
    shell.ok("namespaces", "retention", "default", "90d")
    rows = shell.ok("audit", "--json").rows
    assert [row["action"] for row in rows] == ["namespace.retention", "token.create"]
    assert rows[1]["actor"].startswith("cli:")
    assert secret not in shell.ok("audit", "--json").out
    assert [row["subject"] for row in shell.ok("audit", "--action", "token", "--json").rows] == ["deploys"]
    assert shell.ok("audit", "--actor", "x", "--json").rows == []
