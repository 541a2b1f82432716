"""`rota namespaces`: what there is, and how long history is kept."""

from __future__ import annotations

from tests.cli.shell import Seed, Shell
from tests.support.tables import table


def test_namespaces_are_listed_with_their_retention(shell: Shell, seed: Seed) -> None:
    assert shell.ok("namespaces").out.splitlines()[1].split(maxsplit=1) == [
        "default",
        "30d (the setting retention_days)",
    ]
    answer = shell("namespaces", "--json", env={"ROTA_RETENTION_DAYS": "0"})
    assert answer.rows == [{"name": "default", "retention": None, "hasOwnRetention": False, "quotas": {}}]
    assert shell("namespaces", env={"ROTA_RETENTION_DAYS": "0"}).out.splitlines()[1].split(maxsplit=1) == [
        "default",
        "forever (the setting retention_days)",
    ]


def test_a_retention_is_set_and_written_down(shell: Shell, seed: Seed) -> None:
    assert shell.ok("namespaces", "retention", "default", "90d").err == "namespace default keeps its history for 90d\n"
    assert shell.ok("namespaces", "--json").rows == [
        {"name": "default", "retention": 90 * 86_400, "hasOwnRetention": True, "quotas": {}}
    ]
    shell.ok("namespaces", "retention", "default", "forever")
    assert shell.ok("namespaces", "--json").rows[0]["retention"] is None
    shell.ok("namespaces", "retention", "default", "default")
    assert shell.ok("namespaces", "--json").rows[0]["hasOwnRetention"] is False
    assert len(table(seed.store, "audit")) == 3


def test_a_wrong_retention_is_refused(shell: Shell, seed: Seed) -> None:
    assert "an hour at least" in shell.refused("namespaces", "retention", "default", "5m")
    assert "there is no namespace 'nowhere'" in shell.refused("namespaces", "retention", "nowhere", "5d")
    assert "write `forever`" in shell.refused("namespaces", "retention", "default", "0")
    assert shell("namespaces", "retention", "default", "soon").code == 2


def test_quotas_are_set_shown_and_removed(shell: Shell, seed: Seed) -> None:
    said = shell.ok("namespaces", "quotas", "default", "executionsPerS=2.5", "maxDepth=100000").err
    assert said == "namespace default: executionsPerS 2.5, maxDepth 100000\n"
    assert shell.ok("namespaces", "--json").rows[0]["quotas"] == {"executionsPerS": 2.5, "maxDepth": 100_000}
    assert "executionsPerS 2.5, maxDepth 100000" in shell.ok("namespaces").out
    said = shell.ok("namespaces", "quotas", "default", "executionsPerS=none").err
    assert said == "namespace default: maxDepth 100000\n"
    assert shell("namespaces", "quotas", "default", "maxDept=1").code == 2
    assert shell("namespaces", "quotas", "default", "maxDepth=many").code == 2
    assert "expected whole number >= 0" in shell.refused("namespaces", "quotas", "default", "maxDepth=-1").lower()
    assert "there is no namespace 'nowhere'" in shell.refused("namespaces", "quotas", "nowhere")
