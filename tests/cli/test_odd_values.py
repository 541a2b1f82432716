"""The database may contain any values: commands show odd ones as well as they can, and all others."""

from __future__ import annotations

import json
import sqlite3

import pytest

from rota.cli import output
from rota.domain.instant import moment
from rota.views.shape import rfc3339
from rota.views.stored_json import decoded
from tests.cli.shell import Seed, Shell

FAR = 2**62


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ('["a","b"]', "a, b"),
        ('[["a","b"],["c"]]', '["a", "b"], ["c"]'),
        ('[1,null,{"a":2}]', '1, null, {"a": 2}'),
        ('{"a":[1]}', '{"a": [1]}'),
        ('"alone"', "alone"),
        ("not json", "not json"),
    ],
)
def test_tags_of_every_shape_are_shown(shell: Shell, seed: Seed, stored: str, shown: str) -> None:
    (id,) = seed.enqueue(tags=stored)
    assert f"tags:       {shown}\n" in shell.ok("show", id).out
    assert shell.ok("show", id, "--json").rows["executionId"] == id


def test_instants_that_no_calendar_has_are_shown(shell: Shell, seed: Seed) -> None:
    (id,) = seed.enqueue()
    with sqlite3.connect(seed.path) as connection:
        connection.execute("UPDATE execution SET run_at = ?, deadline = ?", (FAR, -FAR))
    connection.close()
    out = shell.ok("show", id).out
    assert "due:        9999-12-31 23:59:59 UTC (in " in out
    assert "start by:   " in out
    row = shell.ok("show", id, "--json").rows
    assert (row["runAt"], row["startBy"]) == ("9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00Z")
    assert [row["executionId"] for row in shell.ok("executions", "--json").rows] == [id]
    assert id in shell.ok("executions").out


@pytest.mark.parametrize(
    ("instant", "shown"),
    [
        (-(2**63), "0001-01-01T00:00:00Z"),
        (-62135596800_000001, "0001-01-01T00:00:00Z"),
        (253402300799_999999, "9999-12-31T23:59:59.999999Z"),
        (253402300800_000000, "9999-12-31T23:59:59.999999Z"),
        (2**63 - 1, "9999-12-31T23:59:59.999999Z"),
        (1_500_000, "1970-01-01T00:00:01.500000Z"),
    ],
)
def test_an_instant_that_no_calendar_has_is_shown_as_its_first_or_last(instant: int, shown: str) -> None:
    assert rfc3339(moment(instant)) == shown


@pytest.mark.parametrize(
    "stored",
    ['{"n":1e5000}', '{"n":-1e999}', '{"n":NaN}', '{"n":[Infinity]}', f'{{"n":{"9" * 5000}}}', '{"n":' + "[" * 5000],
    ids=lambda stored: stored[:12],
)
def test_one_value_that_cannot_be_read_does_not_end_the_listing(shell: Shell, seed: Seed, stored: str) -> None:
    (odd,) = seed.enqueue()
    (plain,) = seed.enqueue(arguments='{"to":"a"}')
    with sqlite3.connect(seed.path) as connection:
        connection.execute("UPDATE execution SET arguments = ? WHERE id = ?", (stored, odd))
    connection.close()
    out = shell.ok("executions", "--json").out
    rows = {row["executionId"]: row for row in json.loads(out, parse_constant=pytest.fail)}
    assert rows[odd]["arguments"] == stored
    assert rows[plain]["arguments"] == {"to": "a"}
    shell.ok("show", odd)
    assert shell.ok("show", odd, "--json").rows["arguments"] == stored


def test_a_value_that_can_be_read_can_be_printed_however_deep_it_is() -> None:
    for depth in range(100, 1200, 50):
        stored = "[" * depth + "]" * depth
        assert output.to_json(decoded(stored), indent=2)


@pytest.mark.parametrize("stored", ['"just text"', "[1]", '{"type":"E"}', "nonsense"])
def test_errors_of_every_shape_are_shown(shell: Shell, seed: Seed, stored: str) -> None:
    (id,) = seed.fail()
    with sqlite3.connect(seed.path) as connection:
        connection.execute("UPDATE finished SET error = ?", (stored,))
    connection.close()
    assert "error:" in shell.ok("show", id).out
    assert id in shell.ok("dead").out
