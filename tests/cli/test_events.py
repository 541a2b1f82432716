"""`rota emit` and `rota events`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator

import pytest

from rota.clock import SystemClock
from rota.domain.job import Definition
from rota.store.sqlite.store import SqliteStore
from tests.cli.shell import HANG_S, Shell
from tests.events.scene import Scene, subscriber
from tests.support.waiting import eventually
from tests.support.world import World


@pytest.fixture
def scene(shell: Shell) -> Iterator[Scene]:
    store = SqliteStore(f"sqlite:///{shell.folder / 'rota.db'}", SystemClock())
    scene = Scene(World(store))
    scene.deploy(subscriber("bill", "order.paid", where={"total": {"gt": 5}}, debounce_s=1.0), Definition(name="pack"))
    yield scene
    store.close()


def test_emit_prints_the_id(shell: Shell, scene: Scene) -> None:
    id = shell.ok("emit", "order.paid", "order=A-17", "total=9.5", "--subject", "A-17", "--key", "k").out.strip()
    found = scene.event(id)
    assert (found.payload, found.subject, found.key) == ({"order": "A-17", "total": 9.5}, "A-17", "k")
    assert found.actor is not None
    assert scene.started_by(id) == ["bill"]
    again = shell.ok("emit", "order.paid", "order=A-17", "total=9.5", "--subject", "A-17", "--key", "k", "--json")
    assert json.loads(again.out) == {"eventId": id, "isNew": False, "deliveries": 1}
    assert "exists already" in again.err


def test_emit_takes_any_json(shell: Shell, scene: Scene) -> None:
    ids = [
        shell.ok("emit", "x", "--payload", "[1, 2]").out.strip(),
        shell.ok("emit", "x", "--payload", "-", stdin='"text"').out.strip(),
        shell.ok("emit", "x").out.strip(),
    ]
    assert [scene.event(id).payload for id in ids] == [[1, 2], "text", None]
    assert "not both" in shell.refused("emit", "x", "a=1", "--payload", "1")
    assert "an event's name" in shell.refused("emit", "a b")
    assert "is not valid JSON" in shell.refused("emit", "x", "--payload", "{")
    latin = shell("emit", "x", "--payload", "-", stdin='"\udce9"')
    assert (latin.code, latin.err.count("\n")) == (2, 1)
    assert "--payload is not valid JSON" in latin.err


def test_the_list(shell: Shell, scene: Scene) -> None:
    one, two = scene.emit("order.paid", {"total": 9}, "A-1"), scene.emit("order.lost")
    for arguments in (["events"], ["events", "list"]):
        lines = shell.ok(*arguments).out.splitlines()
        assert [line.split()[1] for line in lines[1:]] == ["order.lost", "order.paid"]
    rows = json.loads(shell.ok("events", "--name", "order.paid", "--json").out)
    assert [(row["eventId"], row["subject"], row["deliveries"], row["isDelivered"]) for row in rows] == [
        (one, "A-1", 1, True)
    ]
    assert [row["eventId"] for row in json.loads(shell.ok("events", "--before", two, "--json").out)] == [one]
    assert json.loads(shell.ok("events", "--subject", "A-2", "--json").out) == []
    assert "'zz' is not an id" in shell.refused("events", "--before", "zz")


def test_show_says_what_an_event_started(shell: Shell, scene: Scene) -> None:
    id = scene.emit("order.paid", {"total": 9}, "A-1")
    text = shell.ok("events", "show", id[-8:]).out
    (started,) = scene.event(id).started
    for part in ("order.paid", id, "A-1", '{"total": 9}', started.execution_id, "shop.bill", "scheduled"):
        assert part in text
    shown = json.loads(shell.ok("events", "show", id, "--json").out)
    assert (shown["payload"], shown["started"][0]["executionId"]) == ({"total": 9}, started.execution_id)
    assert "no event" in shell.refused("events", "show", "ffffff")
    assert f"{id}" in shell.ok("show", started.execution_id).out


def test_show_of_an_event_whose_execution_was_deleted(shell: Shell, scene: Scene) -> None:
    id = scene.emit("order.paid", {"total": 9})
    (started,) = scene.event(id).started
    with sqlite3.connect(shell.folder / "rota.db", timeout=HANG_S) as connection:
        connection.execute("DELETE FROM execution")
        connection.execute("DELETE FROM scheduled")
    connection.close()
    assert shell.ok("events", "show", id).out.splitlines()[-1] == f"  {started.execution_id}  deleted by retention"


def test_replay(shell: Shell, scene: Scene) -> None:
    id = scene.emit("order.lost", 1)
    scene.deploy(subscriber("find", "order.lost"))
    assert "started 1 execution" in shell.ok("events", "replay", id).err
    assert json.loads(shell.ok("events", "replay", id, "--json").out) == {"eventId": id, "deliveries": 0}
    new = shell.ok("events", "replay", id, "--force").out.strip()
    assert (scene.event(new).replay_of, scene.started_by(new)) == (id, ["find"])


DROP = """
from rota import App

app = App("drop", url="sqlite:///rota.db")
app.watch("{folder}", "file.dropped", settle=0, every=0.05)
app.outbox("outbox", every=0.05)


@app.job(on=["file.dropped", "order.paid"])
def load(what):
    return what
"""


def test_a_worker_looks_after_folders_and_tables(shell: Shell, worker: Callable[..., None]) -> None:
    """A real worker, from the file and the row to the results. The setting limits the payload of a row."""
    shell.env["ROTA_MAX_PAYLOAD_BYTES"] = "2000"
    drop = shell.folder / "drop"
    drop.mkdir()
    (drop / "a.csv").write_text("1")
    (shell.folder / "drop_app.py").write_text(DROP.replace("{folder}", str(drop)))
    shell.ok("migrate")
    with sqlite3.connect(shell.folder / "rota.db", timeout=HANG_S) as connection:
        connection.execute(
            "CREATE TABLE outbox (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, payload TEXT, "
            "subject TEXT, key TEXT)"
        )
        large = json.dumps("x" * 2000)
        connection.execute("INSERT INTO outbox (name, payload) VALUES ('order.paid', ?), ('order.paid', '5')", (large,))
    connection.close()
    worker(app="drop_app:app")

    def results() -> list[str]:
        rows = json.loads(shell.ok("executions", "--status", "success", "--json").out)
        return sorted(row["job"] for row in rows)

    eventually(lambda: results() == ["load", "load"], timeout_s=HANG_S, what="two executions")
    assert {row["name"] for row in json.loads(shell.ok("events", "--json").out)} == {"file.dropped", "order.paid"}
    with sqlite3.connect(shell.folder / "rota.db", timeout=HANG_S) as connection:
        assert connection.execute("SELECT payload FROM outbox").fetchall() == [(large,)]
    connection.close()


def test_subscribers(shell: Shell, scene: Scene) -> None:
    scene.deploy(subscriber("bill", "order.paid", where={"total": {"gt": 5}}, debounce_s=1.0))
    scene.workflow("main", {"id": "w", "event": {"names": ["order.lost"], "subject": "A-1", "timeout": "1h"}})
    scene.start("main")
    scene.open()
    text = shell.ok("events", "subscribers").out
    assert "shop.bill" in text
    assert '{"total": {"gt": 5}}' in text
    job, step = json.loads(shell.ok("events", "subscribers", "--json").out)
    assert (job["name"], job["app"], job["job"], job["where"], job["debounce"]) == (
        *("order.paid", "shop", "bill"),
        *({"total": {"gt": 5}}, 1.0),
    )
    assert (step["name"], step["subject"], step["job"]) == ("order.lost", "A-1", None)
    assert step["executionId"]
    assert json.loads(shell.ok("events", "subscribers", "--name", "x", "--json").out) == []
