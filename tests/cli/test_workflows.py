"""`rota check` and `rota graph`: the workflows of an app, from its code."""

from __future__ import annotations

import pytest

from tests.cli.shell import SHOP, Shell

GOOD = """
from rota.workflow import default, failed, when

@app.workflow
def mailing(to: str) -> str | None:
    sent = send.options(may_fail=True).step(to)
    with when(failed(sent)):
        fail.step("no mail")
    return default(sent, None)

@app.workflow
def mailings(all_of_them: list[str]) -> None:
    mailing.map(all_of_them)
"""
BAD = """
@app.workflow
def wrong(to: str) -> None:
    send.step(to, subject=5)
    send.step(to, copies="many")

@app.workflow
def worse(to: str) -> None:
    send.step(to + "!")
    send.step(to.upper())
"""


@pytest.fixture
def good(shell: Shell) -> Shell:
    (shell.folder / "flows.py").write_text(SHOP + GOOD)
    return shell


@pytest.fixture
def bad(shell: Shell) -> Shell:
    (shell.folder / "flows.py").write_text(SHOP + GOOD + BAD)
    return shell


def test_check_prints_each_workflow(good: Shell) -> None:
    answer = good.ok("check", "flows:app")
    assert answer.out == "WORKFLOW  STEPS\nmailing   2\nmailings  1\n"
    assert answer.err == ""
    assert not (good.folder / "rota.db").exists()


def test_check_prints_everything_that_is_wrong(bad: Shell) -> None:
    answer = bad("check", "flows:app")
    assert answer.code == 1
    assert answer.out == "WORKFLOW  STEPS\nmailing   2\nmailings  1\n"
    lines = answer.err.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("rota: workflow 'wrong': flows.py:")
    assert "`send.step(to, subject=5)`: step 'send': argument 'subject' takes string, but this is 5" in lines[0]
    assert "step 'send_2': argument 'copies' takes integer, but this is 'many'" in lines[1]
    assert '`to + "!"`: the value is not known yet' in lines[2]
    assert "`to.upper`: " in lines[3]


def test_check_as_json(bad: Shell) -> None:
    answer = bad("check", "flows:app", "--json")
    assert answer.code == 1
    rows = {row["workflow"]: row for row in answer.rows}
    assert rows["mailing"] == {"workflow": "mailing", "steps": 2, "problems": []}
    assert rows["worse"]["steps"] is None
    problem, other = rows["worse"]["problems"]
    assert other["line"] == problem["line"] + 1
    assert problem["expression"] == 'to + "!"'
    lines = (SHOP + GOOD + BAD).splitlines()
    assert "!" in lines[problem["line"] - 1]


def test_check_of_other_declarations(shell: Shell) -> None:
    (shell.folder / "flows.py").write_text(SHOP + "\n@app.job(breaker='bank')\ndef pay() -> None: ...\n")
    answer = shell("check", "flows:app")
    assert answer.code == 1
    assert answer.err.splitlines()[-1].startswith("rota: job 'pay' relies on a breaker 'bank'")


def test_an_app_without_workflows(shell: Shell) -> None:
    assert shell.ok("check", "shop:app").err == "app shop has no workflows\n"
    assert shell.ok("graph", "shop:app").err == "app shop has no workflows\n"
    assert "no module 'nothing'" in shell.refused("check", "nothing:app")


def test_graph(good: Shell) -> None:
    mailing = "mailing(to)\n  send  may fail\n  fail  when send failed\n  result: default(send, null)\n"
    mailings = "mailings(all_of_them)\n  mailing ×\n"
    assert good.ok("graph", "flows:app", "mailing").out == mailing
    assert good.ok("graph", "flows:app").out == f"{mailing}\n{mailings}"
    assert good.ok("graph", "flows:app", "mailing", "--format", "mermaid").out.startswith("flowchart TD\n")
    assert good.ok("graph", "flows:app", "mailing", "--format", "dot").out.startswith('digraph "mailing" {\n')
    assert not (good.folder / "rota.db").exists()


def test_graph_of_what_is_not_there_or_wrong(bad: Shell) -> None:
    assert "has no workflow 'maling'; it has mailing, mailings" in bad.refused("graph", "flows:app", "maling")
    assert "flows.py:" in bad.refused("graph", "flows:app", "worse")
