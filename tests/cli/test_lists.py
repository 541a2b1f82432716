"""Lists: filters, pages, JSON, and hostile text."""

from __future__ import annotations

import re

import pytest

from rota.domain.dependency import CountedEnd, Upstream
from rota.domain.job import Definition
from rota.domain.outcome import Error, Failed, Succeeded
from rota.views.job_detail import Job
from tests.cli.shell import SEND, Answer, Seed, Shell

ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z")
HOSTILE = "\x1b[31mred\x1b[0m \u202eright\x07\x9b2J\r\nsecond\tline"


def ids(answer: Answer) -> list[str]:
    return [row["executionId"] for row in answer.rows]


def test_executions_are_filtered(shell: Shell, seed: Seed) -> None:
    (done,) = seed.enqueue()
    seed.run(Succeeded('"ok"'))
    (bad,) = seed.fail(message="no such host")
    (later,) = seed.enqueue(delay_s=3600)
    (queued,) = seed.enqueue(queue="default")
    expected = {
        (): [queued, later, bad, done],
        ("--status", "success"): [done],
        ("--status", "SCHEDULED"): [later],
        ("--status", "queued"): [queued],
        ("--job", "fail"): [bad],
        ("--queue", "default"): [queued],
        ("--error", "SUCH HOST"): [bad],
        ("--app", "other"): [],
        ("--since", "1h"): [queued, later, bad, done],
        ("--since", "2999-01-01T00:00Z"): [],
        ("--before", bad): [done],
    }
    for words, found in expected.items():
        assert ids(shell.ok("executions", *words, "--json")) == found, words


def test_a_job_is_named_with_or_without_its_app_and_must_exist(shell: Shell, seed: Seed) -> None:
    seed.define("blog.posts", SEND)
    (bad,), (post,) = seed.fail(), seed.enqueue(app="blog.posts")
    for job in ("fail", "shop.fail"):
        assert ids(shell.ok("executions", "--job", job, "--json")) == [bad]
        assert ids(shell.ok("dead", "--job", job, "--json")) == [bad]
    assert ids(shell.ok("executions", "--job", "blog.posts.send", "--json")) == [post]
    assert ids(shell.ok("executions", "--job", "send", "--app", "shop", "--json")) == []
    for words in (["executions"], ["dead"], ["dead", "replay", "--all", "--yes"]):
        assert "there is no job 'sned', did you mean 'send'?" in shell.refused(*words, "--job", "sned")
    assert "app 'blog.posts' has no job 'shop.send'" in shell.refused(
        "dead", "--job", "shop.send", "--app", "blog.posts"
    )
    assert "job shop.send is paused" in shell.ok("jobs", "pause", "shop.send").err
    assert "job shop.send resumed" in shell.ok("jobs", "resume", "shop.send").err
    new = shell.ok("enqueue", "shop.send", "to=a").out.strip()
    assert ids(shell.ok("executions", "--job", "shop.send", "--json")) == [new]


def test_a_terminal_leaves_out_the_app_if_there_is_only_one(shell: Shell, seed: Seed) -> None:
    seed.fail()
    for words in ("executions", "dead"):
        assert "  fail  " in shell.screen(words)[1]
        assert "  shop.fail  " in shell.ok(words).out
    seed.define("blog", SEND)
    seed.enqueue(app="blog")
    shown = shell.screen("executions")[1]
    assert "  shop.fail  " in shown
    assert "  blog.send  " in shown


def test_a_list_has_the_error_before_the_reason_and_no_reason_that_repeats_the_status(shell: Shell, seed: Seed) -> None:
    seed.fail(message="no such host")
    (stopped,) = seed.enqueue()
    shell.ok("cancel", stopped)
    cancelled, failed = shell.ok("executions").out.splitlines()[1:]
    assert failed.endswith("  ValueError: no such host (error)")
    assert cancelled.count("cancelled") == 1
    assert "status:     cancelled\n" in shell.ok("show", stopped).out


def test_the_name_of_a_job_in_place_of_an_id_says_how_to_run_it(shell: Shell, seed: Seed) -> None:
    for command in ("run-now", "show", "replay"):
        said = shell.refused(command, "send")
        assert said.startswith("send is a job, not the id of an execution: `rota enqueue send` runs it now, "), said


def test_a_page_tells_of_the_next(shell: Shell, seed: Seed) -> None:
    made = seed.enqueue(count=5)[::-1]
    first = shell.ok("executions", "--limit", "3", "--json")
    assert ids(first) == made[:3]
    assert f"--before {made[2]}" in first.err
    second = shell.ok("executions", "--limit", "3", "--before", made[2], "--json")
    assert ids(second) == made[3:]
    assert second.err == ""


def test_json_has_iso_times_values_and_stable_keys(shell: Shell, seed: Seed) -> None:
    seed.enqueue(arguments='{"to":"Zoë"}', tags='["x"]')
    (row,) = shell.ok("executions", "--json").rows
    assert list(row)[:6] == ["executionId", "status", "jobId", "job", "app", "version"]
    assert ISO.fullmatch(row["createdAt"])
    assert row["completedAt"] is None
    assert row["arguments"] == {"to": "Zoë"}
    assert row["tags"] == ["x"]
    assert shell.ok("executions", "--json").out.count("\n") == 3


def test_empty_lists_are_empty_arrays(shell: Shell) -> None:
    shell.ok("migrate")
    for words in (["executions"], ["dead"], ["queues"], ["workers"], ["jobs"]):
        assert shell.ok(*words, "--json").rows == []
        answer = shell.ok(*words)
        assert (answer.out, answer.err.count("\n")) == ("", 1)


def test_tables_outside_a_terminal_are_plain_and_complete(shell: Shell, seed: Seed) -> None:
    made = seed.enqueue(count=2)
    lines = shell("executions", env={"COLUMNS": "20"}).out.splitlines()
    assert lines[0].split() == ["ID", "STATUS", "JOB", "QUEUE", "ATTEMPTS", "CREATED", "DUE", "TOOK", "REASON"]
    assert [line.split()[:3] for line in lines[1:]] == [[id, "queued", "shop.send"] for id in reversed(made)]
    assert not any("\x1b" in line or line != line.rstrip() for line in lines)


def test_hostile_text_is_shown_harmlessly(shell: Shell, seed: Seed) -> None:
    (id,) = seed.enqueue("fail")
    seed.run(Failed(Error("Evil\x1b[2J", HOSTILE, f"Traceback\n  {HOSTILE}")))
    seed.store.close()
    shell.ok("queues", "pause", "mail", "--note", HOSTILE.replace("\x00", ""))
    for words in (["dead"], ["show", id], ["queues"], ["dead", "--json"], ["show", id, "--json"]):
        out = shell.ok(*words).out
        assert "right" in out
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", out), words
    table = shell.ok("dead").out
    assert table.count("\n") == 2
    assert "\\x1b[31mred" in table
    (row,) = shell.ok("dead", "--json").rows
    assert row["error"]["message"] == HOSTILE


def test_a_terminal_gets_a_fitted_table_that_hostile_text_cannot_steer(shell: Shell, seed: Seed) -> None:
    (id,) = seed.enqueue("fail")
    seed.run(Failed(Error("Error", "[bold]markup[/bold] \x1b[2Jclear")))
    code, shown = shell.screen("dead", columns=200)
    assert code == 0
    assert id in shown
    assert "[bold]markup[/bold]" in shown
    assert "\x1b[2J" not in shown


def test_queues_show_what_is_in_them(shell: Shell, seed: Seed) -> None:
    seed.enqueue(count=2)
    seed.enqueue(delay_s=60)
    shell.ok("queues", "pause", "mail", "--note", "provider down")
    rows = {row["name"]: row for row in shell.ok("queues", "--json").rows}
    mail = rows["mail"]
    assert (mail["queued"], mail["scheduled"], mail["running"], mail["dead"]) == (2, 1, 0, 0)
    assert mail["paused"]["note"] == "provider down"
    assert mail["paused"]["by"].startswith("cli")
    assert "was paused already" in shell.ok("queues", "pause", "mail").err
    assert "queue mail resumed" in shell.ok("queues", "resume", "mail").err
    assert "was not paused" in shell.ok("queues", "resume", "mail").err
    assert "there is no queue 'nope'" in shell.refused("queues", "pause", "nope")


def test_workers_show_who_is_at_work(shell: Shell, seed: Seed) -> None:
    seed.enqueue(count=2)
    gone, live = seed.join(lease_s=0.0), seed.join(queues=["mail"])
    seed.claim(live)
    seed.run(Succeeded())
    rows = {int(row["workerId"]): row for row in shell.ok("workers", "--json").rows}
    assert set(rows) == {gone, live}
    assert (rows[live]["busy"], rows[live]["queues"], rows[gone]["queues"]) == (2, ["mail"], None)
    assert (rows[live]["isLost"], rows[gone]["isLost"]) == (False, True)
    assert "lease ran out" in shell.ok("workers").out
    assert len(shell.ok("workers", "--since", "1h", "--json").rows) == 3


def test_jobs_show_parameters(shell: Shell, seed: Seed) -> None:
    assert "send(to: str, subject?: str)" in shell.ok("jobs").out
    rows = shell.ok("jobs", "--app", "shop", "--json").rows
    assert [row["name"] for row in rows] == ["fail", "send"]
    assert set(rows[1]) == set(Job.__struct_encode_fields__), "as the HTTP API has it"
    schema = rows[1]["parameters"]
    assert (schema["properties"]["to"], schema["required"]) == ({"type": "string"}, ["to"])
    assert shell.ok("jobs", "--app", "other", "--json").rows == []
    none = "app other has no jobs: `rota jobs` and `rota workflows` list the apps\n"
    assert shell.ok("jobs", "--app", "other").err == none


def test_jobs_show_what_they_depend_on_and_which_ends_have_come(shell: Shell, seed: Seed) -> None:
    upstreams = [Upstream("shop", "fail", CountedEnd.FAILED), Upstream("shop", "send")]
    seed.deploy("shop", Definition(name="fail"), SEND, Definition(name="report", depends_on=upstreams))
    (failed,) = seed.fail()
    assert "fail (failed, met), send" in shell.ok("jobs").out
    rows = {row["name"]: row for row in shell.ok("jobs", "--json").rows}
    shown = [{"job": rows["fail"]["jobId"], "on": "failed"}, rows["send"]["jobId"]]
    assert (rows["report"]["dependencies"], rows["report"]["met"]) == (shown, {"fail": failed})
    sent = seed.enqueue()
    seed.join(queues=["mail"])
    seed.run(Succeeded())
    (row,) = shell.ok("executions", "--job", "report", "--json").rows
    assert f"after:      fail {failed}, send {sent[0]}" in shell.ok("show", row["executionId"]).out


@pytest.mark.parametrize("place", ["before", "after"])
def test_the_database_and_namespace_may_be_named_before_or_after(shell: Shell, seed: Seed, place: str) -> None:
    seed.enqueue()
    elsewhere = ["--url", "sqlite:///sub/other.db", "--namespace", "east"]
    (shell.folder / "sub").mkdir()
    words = [*elsewhere, "migrate"] if place == "before" else ["migrate", *elsewhere]
    shell.ok(*words)
    words = [*elsewhere, "executions", "--json"] if place == "before" else ["executions", "--json", *elsewhere]
    assert shell.ok(*words).rows == []
    assert shell("executions", "--json", env={"ROTA_URL": "sqlite:///sub/other.db"}).rows == []
    assert shell.ok("executions", "--json", "--namespace", "east").rows == []
    assert len(shell.ok("executions", "--json").rows) == 1
