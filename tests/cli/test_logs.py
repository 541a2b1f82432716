"""`rota logs`: what an execution has written; and what `rota show` says of what it told."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
from contextlib import closing

import psycopg
import pytest

from rota.domain.note import Line, State
from rota.domain.outcome import GivenBack, Succeeded
from rota.domain.status import Reason
from rota.ops import finish, fleet, notes
from rota.store.postgres.store import PostgresStore
from tests.cli.shell import HANG_S, Seed, Shell
from tests.notes.telling import cut
from tests.support.databases import fresh_database
from tests.support.world import World

AT = 1_767_225_600_000_000


def write(seed: Seed, id: str, *texts: str, first: int = 1, fence: int = 1, stream: str = "stdout") -> None:
    lines = [Line(id, fence, number, AT + number, stream, text) for number, text in enumerate(texts, start=first)]
    seed.store.transact(notes.write, cut(lines), [])


def running(seed: Seed) -> tuple[str, int]:
    """An execution that runs, and its worker."""
    (id,) = seed.enqueue()
    worker = seed.join()
    assert seed.claim(worker) == [(id, 1)]
    return id, worker


def again(seed: Seed, id: str, worker: int) -> None:
    """The attempt that runs is given back, and another one begins."""
    seed.store.transact(finish.finish, [finish.Finished(id, 1, GivenBack(Reason.DRAINED))])
    assert seed.claim(worker) == [(id, 2)]


def end(seed: Seed, id: str, fence: int = 1) -> None:
    report = finish.Finished(id, fence, Succeeded("1"))
    assert seed.store.transact(finish.finish, [report]) == []


def use(seed: Seed, id: str, usage: str) -> None:
    with sqlite3.connect(seed.path) as connection:
        connection.execute("UPDATE finished SET usage = ? WHERE id = ?", (usage, id))
    connection.close()


def read(process: subprocess.Popen[str], count: int) -> list[str]:
    assert process.stdout is not None
    return [process.stdout.readline() for _ in range(count)]


def test_lines_are_printed_as_they_are(shell: Shell, seed: Seed) -> None:
    id, worker = running(seed)
    write(seed, id, "one", "", "  three")
    write(seed, id, "four", first=4, stream="stderr")
    again(seed, id, worker)
    write(seed, id, "five", fence=2, stream="log")
    answer = shell.ok("logs", id)
    assert (answer.out, answer.err) == ("one\n\n  three\nfour\nfive\n", "")
    assert shell.ok("logs", id[:-1].upper()).out == answer.out
    assert shell.ok("logs", id, "--fence", "2").out == "five\n"
    assert shell.ok("logs", id, "--stream", "stderr").out == "four\n"
    assert shell.ok("logs", id, "--limit", "2").out == "four\nfive\n"
    assert shell.ok("logs", id, "--limit", "2", "--stream", "stdout").out == "\n  three\n"
    assert shell.ok("logs", id, "--limit", "50").out == answer.out


def test_the_last_lines_begin_in_the_middle_of_what_was_written_at_once(shell: Shell, seed: Seed) -> None:
    id, worker = running(seed)
    texts = [f"line {number}" for number in range(1, 2502)]
    write(seed, id, *texts)
    again(seed, id, worker)
    write(seed, id, "other", stream="stderr", fence=2)
    write(seed, id, "last", first=2, fence=2)
    assert shell.ok("logs", id, "--limit", "1400").out.splitlines() == [*texts[-1398:], "other", "last"]
    assert shell.ok("logs", id, "--limit", "1400", "--stream", "stdout").out.splitlines() == [*texts[-1399:], "last"]
    assert shell.ok("logs", id, "--limit", "7", "--fence", "1").out.splitlines() == texts[-7:]


def test_what_we_say_ourselves_goes_to_stderr(shell: Shell, seed: Seed) -> None:
    id, _ = running(seed)
    write(seed, id, "its own")
    write(seed, id, "5 lines were left out", first=2, stream="rota")
    answer = shell.ok("logs", id)
    assert (answer.out, answer.err) == ("its own\n", "5 lines were left out\n")


def test_the_time_of_each_line_can_be_had(shell: Shell, seed: Seed) -> None:
    id, _ = running(seed)
    write(seed, id, "one", "two")
    assert shell.ok("logs", id, "--times").out == ("2026-01-01T00:00:00.000001Z one\n2026-01-01T00:00:00.000002Z two\n")


def test_lines_cannot_do_anything_to_a_terminal(shell: Shell, seed: Seed) -> None:
    id, _ = running(seed)
    write(seed, id, "\x1b[2Jgone", "a\tb", "\u202egnp.exe", "Grüße 🎉")
    write(seed, id, "\x1b]0;title\x07", first=5, stream="rota")
    answer = shell.ok("logs", id)
    assert answer.out == "\\x1b[2Jgone\na   b\n\\u202egnp.exe\nGrüße 🎉\n"
    assert answer.err == "\\x1b]0;title\\x07\n"
    out = shell.ok("logs", id, "--json").out
    assert "\x1b" not in out
    assert json.loads(out)[0]["text"] == "\x1b[2Jgone"


def test_programs_get_an_array_with_one_line_per_line(shell: Shell, seed: Seed) -> None:
    id, _ = running(seed)
    write(seed, id, *(f"line {number}" for number in range(1, 2502)))
    answer = shell.ok("logs", id, "--json")
    assert len(answer.rows) == 2501
    assert answer.rows[0] == {
        "fence": 1,
        "line": 1,
        "at": "2026-01-01T00:00:00.000001Z",
        "stream": "stdout",
        "text": "line 1",
    }
    assert len(answer.out.splitlines()) == 2503
    assert [row["text"] for row in answer.rows] == shell.ok("logs", id).out.splitlines()


def test_an_execution_that_wrote_nothing_says_so(shell: Shell, seed: Seed) -> None:
    (id,) = seed.enqueue()
    answer = shell.ok("logs", id)
    assert (answer.out, answer.err) == ("", f"execution {id} has written nothing\n")
    assert shell.ok("logs", id, "--fence", "7").err == f"execution {id} has no such lines\n"
    assert shell.ok("logs", id, "--json").out == "[]\n"


def test_what_cannot_be_meant_is_refused(shell: Shell, seed: Seed) -> None:
    seed.enqueue()
    assert "there is no execution ffff" in shell.refused("logs", "ffff")
    assert "an id cannot be empty" in shell.refused("logs", "")
    (id,) = seed.enqueue()
    assert f"there is no execution {id}" in shell.refused("logs", id, "--namespace", "other")
    for words in (("--fence", "0"), ("--fence", str(2**31)), ("--limit", "0"), ("--stream", "stdin")):
        assert words[0] in shell.refused("logs", id, *words)


def test_following_lasts_until_the_execution_has_ended(shell: Shell, seed: Seed) -> None:
    id, worker = running(seed)
    write(seed, id, "zero", "one")
    process = shell.start("logs", id, "--follow", "--limit", "1")
    assert read(process, 1) == ["one\n"]
    write(seed, id, "two", first=3)
    assert read(process, 1) == ["two\n"]
    again(seed, id, worker)
    write(seed, id, "three", fence=2)
    assert read(process, 1) == ["three\n"]
    write(seed, id, *(f"line {number}" for number in range(1500)), first=2, fence=2)
    end(seed, id, 2)
    out, err = process.communicate(timeout=HANG_S)
    assert (process.returncode, err) == (0, "")
    assert out.splitlines() == [f"line {number}" for number in range(1500)]


def test_following_what_has_ended_prints_it_and_ends(shell: Shell, seed: Seed) -> None:
    id, _ = running(seed)
    write(seed, id, "one")
    end(seed, id)
    answer = shell.ok("logs", id, "--follow")
    assert (answer.out, answer.err) == ("one\n", "")
    assert shell.ok("logs", id, "-f", "--json").rows["text"] == "one"
    (cancelled,) = seed.enqueue()
    shell.ok("cancel", cancelled)
    assert shell.ok("logs", cancelled, "--follow").err == f"execution {cancelled} has written nothing\n"


def test_following_one_attempt_ends_with_it(shell: Shell, seed: Seed) -> None:
    id, worker = running(seed)
    write(seed, id, "one")
    process = shell.start("logs", id, "--follow", "--fence", "1")
    assert read(process, 1) == ["one\n"]
    again(seed, id, worker)
    assert process.communicate(timeout=HANG_S) == ("", "")
    assert process.returncode == 0


def test_logs_on_postgres_are_followed_and_shown_too(shell: Shell) -> None:
    url = fresh_database()
    world = World(PostgresStore(url, inline=True))
    _, attempt = world.start()
    lines = [Line(attempt.id, attempt.fence, number, AT, "stdout", f"line {number}") for number in range(1, 4)]
    world.store.transact(notes.write, cut(lines[:2]), [State(attempt.id, attempt.fence, AT, 1, 4, "begun", "[]")])
    process = shell.start("logs", attempt.id, "--follow", "--limit", "1", "--fence", "1", "--url", url)
    assert read(process, 1) == ["line 2\n"]
    world.store.transact(notes.write, cut(lines[2:]), [])
    world.finish(attempt)
    assert process.communicate(timeout=HANG_S) == ("line 3\n", "")
    assert process.returncode == 0
    assert "progress:   1 of 4 (25%), begun (fence 1, " in shell.ok("show", attempt.id, "--url", url).out
    assert len(shell.ok("logs", attempt.id, "--url", url, "--json").rows) == 3
    world.store.close()


def test_following_resumes_where_it_was_after_its_connection_broke(shell: Shell) -> None:
    """Twice, and each time it says so once. No line is lost, and none comes twice."""
    url = fresh_database()
    world = World(PostgresStore(url, inline=True))
    _, attempt = world.start()
    lines = [Line(attempt.id, attempt.fence, number, AT, "stdout", f"line {number}") for number in range(1, 7)]
    process = shell.start("logs", attempt.id, "--follow", "--url", url)
    assert process.stderr is not None
    for first in (0, 2):
        world.store.transact(notes.write, cut(lines[first : first + 2]), [])
        assert read(process, 2) == [f"line {first + 1}\n", f"line {first + 2}\n"]
        with closing(psycopg.connect(url, autocommit=True)) as connection:
            cut_off = connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND application_name LIKE 'rota%cli%'"
            ).fetchall()
        assert cut_off == [(True,)]
        assert process.stderr.readline().startswith("trying again for 60 s: ")
    world.store.transact(notes.write, cut(lines[4:]), [])
    world.finish(attempt)
    assert process.communicate(timeout=HANG_S) == ("line 5\nline 6\n", "")
    assert process.returncode == 0
    world.store.close()


def test_following_can_be_interrupted(shell: Shell, seed: Seed) -> None:
    id, _ = running(seed)
    write(seed, id, "one")
    process = shell.start("logs", id, "--follow")
    assert read(process, 1) == ["one\n"]
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=HANG_S) == ("", "")
    assert process.returncode == 130


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ({"done": 40, "total": 100, "note": "parsing"}, "progress:   40 of 100 (40%), parsing (fence 1, "),
        ({"done": 1234567}, "progress:   1,234,567 (fence 1, "),
        ({"done": 0.5, "total": 2.25}, "progress:   0.5 of 2.25 (22%) (fence 1, "),
        ({"total": 3}, "progress:   0 of 3 (0%) (fence 1, "),
        ({"done": 5, "total": 3}, "progress:   5 of 3 (fence 1, "),
        ({"done": 0, "total": 0}, "progress:   0 of 0 (fence 1, "),
        ({"done": 1e300}, "progress:   1e+300 (fence 1, "),
        ({"note": "\x1b[31mred"}, "progress:   \\x1b[31mred (fence 1, "),
        ({"checkpoint": json.dumps("x" * 1998)}, "checkpoint: 2 KB\n"),
    ],
)
def test_show_has_the_reported_progress(shell: Shell, seed: Seed, told: dict[str, object], shown: str) -> None:
    id, _ = running(seed)
    assert "progress" not in shell.ok("show", id).out
    assert shell.ok("show", id, "--json").rows["progressDetail"] is None
    state = State(id, 1, seed.clock.now(), **told)  # type: ignore[arg-type]
    assert seed.store.transact(notes.write, [], [state]) == []
    assert shown in shell.ok("show", id).out


def test_json_has_the_reported_progress_and_the_checkpoint(shell: Shell, seed: Seed) -> None:
    id, _ = running(seed)
    seed.store.transact(notes.write, [], [State(id, 1, AT, 1, 2, "half", '{"row":[3]}')])
    assert shell.ok("show", id, "--json").rows["progressDetail"] == {
        "fence": 1,
        "at": "2026-01-01T00:00:00Z",
        "done": 1.0,
        "total": 2.0,
        "note": "half",
        "checkpoint": {"row": [3]},
    }


@pytest.mark.parametrize(
    ("usage", "shown"),
    [
        ('{"cpu_s":1.234,"peak_bytes":85000000,"signal":"SIGKILL"}', "  usage:    1.2 s CPU, 81.1 MB, SIGKILL\n"),
        ('{"cpu_s":0.012,"exit_code":3}', "  usage:    0.012 s CPU, exit code 3\n"),
        ('{"cpu_s":100,"exit_code":0}', "  usage:    100.0 s CPU\n"),
    ],
)
def test_show_says_what_an_attempt_cost(shell: Shell, seed: Seed, usage: str, shown: str) -> None:
    id, worker = running(seed)
    end(seed, id)
    seed.store.transact(fleet.leave, worker)
    assert "usage" not in shell.ok("show", id).out
    assert shell.ok("show", id, "--json").rows["attempts"][0]["usage"] is None
    use(seed, id, usage)
    assert shown in shell.ok("show", id).out
    shown_usage = shell.ok("show", id, "--json").rows["attempts"][0]["usage"]
    if usage.startswith("{"):
        assert shown_usage["cpu"] == json.loads(usage)["cpu_s"]
    else:
        assert shown_usage == usage
