"""`rota enqueue`: arguments, options, waiting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rota.domain.job import Definition
from tests.cli.shell import SEND, Seed, Shell

OPS = """
from rota import App
app = App("ops")
app.http("ask", "http://example.com/{order}?full={full}")
app.command("run", ["sh", "-c", "exit {code}", "sh", "{all*}"])
"""


def row(shell: Shell, id: str) -> Any:
    return shell.ok("show", id.strip(), "--json").rows


@pytest.mark.parametrize(
    ("words", "stored"),
    [
        (["to=a@b.c"], {"to": "a@b.c"}),
        (["to=a=b", "subject="], {"to": "a=b", "subject": ""}),
        (["to=NaN", 'subject="007"'], {"to": "NaN", "subject": "007"}),
        (["to=1.10", "subject=null"], {"to": "1.10", "subject": "null"}),
        (["to=007", "subject=true"], {"to": "007", "subject": "true"}),
        (["--args", '{"subject": "x", "to": "a"}'], {"subject": "x", "to": "a"}),
    ],
)
def test_values_are_json_or_else_text(shell: Shell, seed: Seed, words: list[str], stored: object) -> None:
    id = shell.ok("enqueue", "send", *words).out
    assert row(shell, id)["arguments"] == stored
    assert row(shell, id)["actor"].startswith("cli")


def test_json_values_keep_their_types_and_may_come_from_stdin(shell: Shell, seed: Seed) -> None:
    about = {"type": "any", "required": False}
    seed.define("shop", Definition(name="any", parameters={"a": about, "b": about, "c": about}))
    id = shell.ok("enqueue", "any", "a=3", "b=[1, null]", 'c={"x": true}').out
    assert row(shell, id)["arguments"] == {"a": 3, "b": [1, None], "c": {"x": True}}
    id = shell.ok("enqueue", "any", "--args", "-", stdin='{"a": 1.5}').out
    assert row(shell, id)["arguments"] == {"a": 1.5}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["send"], "missing argument 'to'; it takes (to: text, subject?: text)"),
        (["send", "to=a", "subjekt=b"], "there is no argument 'subjekt', did you mean 'subject'?"),
        (["send", "to=[3]"], "argument 'to': expected text, got list"),
        (["send", "--args", '{"to": 3}'], "argument 'to': expected text, got whole number"),
        (["send", "a@b.c"], "an argument is name=value, not 'a@b.c'"),
        (["send", "to=a", "to=b"], "the argument 'to' is given twice"),
        (["send", "to=a", "--args", "{}"], "not both"),
        (["send", "--args", "{to: 1}"], "--args is not valid JSON"),
        (["send", "--args", "[1]"], "--args takes an object"),
        (["sned", "to=a"], "there is no job 'sned', did you mean 'send'?"),
        (["send", "to=a", "--app", "other"], "app 'other' has no job 'send'"),
    ],
)
def test_what_does_not_fit_is_named(shell: Shell, seed: Seed, words: list[str], says: str) -> None:
    assert says in shell.refused("enqueue", *words)


@pytest.mark.parametrize(("value", "kind"), [("[1]", "list"), ("null", "null"), ('{"a": 1}', "object")])
def test_what_could_never_stand_in_a_request_or_command_is_refused(shell: Shell, value: str, kind: str) -> None:
    (shell.folder / "ops.py").write_text(OPS)
    shell.ok("enqueue", "--load", "ops:app", "ask", "order=1", "full=true", "more=[1]")
    said = f"argument 'order': expected text or whole number or number or true or false, got {kind}"
    assert said in shell.refused("enqueue", "ask", f"order={value}", "full=1")
    assert "argument 'code'" in shell.refused("enqueue", "run", f"code={value}", "all=[1, 2]")
    assert "argument 'all'" in shell.refused("enqueue", "run", "code=1", f"all=[{value}]")
    shell.ok("enqueue", "run", "code=1", 'all=["a", 2.5, true]')


def test_several_apps_with_the_job_are_asked_for(shell: Shell, seed: Seed) -> None:
    seed.define("blog", SEND)
    line = shell.refused("enqueue", "send", "to=a")
    assert "the apps blog, shop have a job 'send': say which with --app blog" in line
    assert row(shell, shell.ok("enqueue", "send", "to=a", "--app", "blog").out)["app"] == "blog"


def test_the_code_of_the_app_checks_more_and_makes_its_jobs_known(shell: Shell) -> None:
    line = shell.refused("enqueue", "--load", "shop:app", "send", "to=a", "copies=[1]")
    assert "argument 'copies': expected whole number, got list" in line
    assert "has no job 'snd' (did you mean 'send'?)" in shell.refused("enqueue", "--load", "shop:app", "snd")
    assert "is the app 'shop', not 'blog'" in shell.refused("enqueue", "--load", "shop:app", "--app", "blog", "send")
    assert not (shell.folder / "rota.db").exists()
    id = shell.ok("enqueue", "--load", "shop:app", "send", "to=a", "copies=2").out
    assert row(shell, id)["queue"] == "mail"
    shell.ok("enqueue", "send", "to=a")


def test_options_reach_the_execution(shell: Shell, seed: Seed) -> None:
    words = ["--delay", "90", "--priority", "high", "--queue", "slow", "--start-within", "1m"]
    later = row(shell, shell.ok("enqueue", "send", "to=a", *words).out)
    assert (later["status"], later["priority"], later["queue"]) == ("scheduled", 10, "slow")
    assert later["startBy"] > later["runAt"] > later["createdAt"]
    at = row(shell, shell.ok("enqueue", "send", "to=a", "--at", "2999-01-31T10:00+01:00", "--priority", "-7").out)
    assert (at["runAt"], at["priority"]) == ("2999-01-31T09:00:00Z", -7)


def test_keys_give_the_same_execution_back(shell: Shell, seed: Seed) -> None:
    first = shell.ok("enqueue", "send", "to=a", "subject=b", "--key", "order-42").out
    again = shell.ok("enqueue", "send", "subject=b", "to=a", "--key", "order-42")
    assert again.out == first
    assert "was there already" in again.err
    assert "the key 'order-42' belongs to" in shell.refused("enqueue", "send", "to=c", "--key", "order-42", code=1)


def test_unique_executions(shell: Shell, seed: Seed) -> None:
    first = shell.ok("enqueue", "send", "to=a", "--unique").out
    assert shell.ok("enqueue", "send", "to=a", "--unique").out == first
    refused = shell.refused("enqueue", "send", "to=a", "--unique", "--on-conflict", "reject", code=1)
    assert first.strip() in refused
    assert shell.ok("enqueue", "send", "to=a", "--unique", "--json").rows == {
        "executionId": first.strip(),
        "isNew": False,
    }
    replaced = shell.ok("enqueue", "send", "to=a", "--on-conflict", "replace").out
    assert row(shell, first)["reason"] == "replaced"
    assert replaced != first
    words = ["--unique-key", "k", "--unique-for", "10m"]
    assert shell.ok("enqueue", "send", "to=a", *words).out == shell.ok("enqueue", "send", "to=b", *words).out


def test_waiting_prints_the_result_or_fails(shell: Shell, worker: Callable[..., None]) -> None:
    worker()
    shell.ok("enqueue", "--load", "shop:app", "send", "to=a", "--wait")
    answer = shell.ok("enqueue", "send", "to=a", "copies=2", "--wait")
    assert answer.rows == "2 x hi to a"
    answer = shell.ok("enqueue", "send", "to=b", "--wait", "--json")
    assert answer.rows["result"] == "1 x hi to b"
    assert row(shell, answer.rows["executionId"])["status"] == "success"
    line = shell("enqueue", "fail", "text=two\nlines", "--wait")
    assert (line.code, line.out) == (1, "")
    assert line.err.splitlines()[-1].endswith("failed (error): ValueError: two lines")
    late = shell("enqueue", "send", "to=a", "--delay", "1h", "--wait", "--timeout", "50ms")
    assert late.code == 1
    assert "scheduled to start in 59 m" in late.err
    assert "is scheduled after 0.05 s; it continues" in late.err


def test_wait_says_that_the_execution_is_queued_only_after_a_moment(shell: Shell, seed: Seed) -> None:
    seed.join()
    at_once = shell("enqueue", "send", "to=a", "--wait", "--timeout", "50ms").err.splitlines()
    assert len(at_once[0]) == 36
    assert at_once[1:] == [f"rota: execution {at_once[0]} is queued after 0.05 s; it continues"]
    id, why, end = shell("enqueue", "send", "to=a", "--wait", "--timeout", "1.2s").err.splitlines()
    assert why == f"{id}: queued behind 1; waits for a free slot of a worker"
    assert end == f"rota: execution {id} is queued after 1.2 s; it continues"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--timeout", "5s"], "--timeout is how long --wait waits: add --wait"),
        (["--load", ""], "an app is named as MODULE:APP"),
        (["--app", ""], "app '' has no job 'send'"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(shell: Shell, seed: Seed, words: list[str], says: str) -> None:
    assert says in shell.refused("enqueue", "send", "to=a", *words)
    assert shell.ok("executions", "--json").rows == []
