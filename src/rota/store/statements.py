"""Named statements from `queries/*.sql`, in the words of one dialect.

A block starts with `-- name: some_name`, optionally followed by `@sqlite` or `@postgres` for a variant that only
this dialect uses. A block may hold several statements; they run in order, as one step of an operation.

One text serves both databases, because a batch has a notation of its own:

    EACH(:rows, id uuid, fence bigint)   a table made from a list of tuples, with these columns
    PAIRS(:texts, id uuid, name text)    the same with two columns, made from a dictionary: SQLite reads that faster
    x.id AMONG(:ids, uuid)               whether a value is in a list
    :now, :clock                         when the transaction began; while the statement runs, where that can be told
    :returned                            SQLite, from the second statement on: the first column that the first returned
    LIVE(w)                              whether a worker may claim: it has not stopped, does not drain, and has a lease
    KEYS(:texts, id uuid)                the keys of a dictionary alone
    PLACED                               the columns of `execution` that `ops/place.py` fills
    PLACED(e.id, r.version AS number)    the same as values: these, and the parameter `:column` for all others
    LISTED(x.name, x.list)               whether a value is in a stored JSON array
    FOUND(text, part)                    where a part of a text begins, from 1; 0 if nowhere
    LISTING(x), PAIR(x, y)               a JSON array of all rows' values, and of two values
    … FOR UPDATE OF x                    only on PostgreSQL: SQLite has one writer, who need not lock a row

SQLite gets a list as one JSON value, PostgreSQL as arrays, one for each column. A dictionary goes to SQLite as one
object, whose keys and values `json_each` gives, and to PostgreSQL as two arrays, or one of its values.

On PostgreSQL every table is named with its schema, so that no statement depends on a search path: it may run in a
caller's own transaction or behind a pooler.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

_HEADER = re.compile(r"^-- name: (\w+)(?: @(\w+))?[ \t]*$", re.MULTILINE)
_COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)
_EACH = re.compile(r"EACH\(:(\w+), ([^()]+)\)")
_PAIRS = re.compile(r"PAIRS\(:(\w+), (\w+) \w+, (\w+) \w+\)")
_DICTIONARY = re.compile(r"\b(?:PAIRS|KEYS)\(")
_KEYS = re.compile(r"KEYS\(:(\w+), (\w+) \w+\)")
_AMONG = re.compile(r"AMONG\(:(\w+), (\w+)\)")
_PLACED = re.compile(r"PLACED\(([^()]+)\)")
_LISTED = re.compile(r"LISTED\(([\w.]+), ([\w.]+)\)")
_LIVE = re.compile(r"LIVE\((\w+)\)")
_LOCK = re.compile(r"\s+FOR (?:UPDATE|NO KEY UPDATE|SHARE|KEY SHARE)(?: OF \w+)?(?: SKIP LOCKED)?")
_TABLES = (
    "namespace|queue|lane|job|job_version|execution|scheduled|waiting|blocker|lifted_blocker|ready|running|finished|dead"
    "|unique_key|expiry"
    "|worker|audit|state|migration|summary|chore|execution_default|schedule|hand|tick|calendar|log|note|breaker|affinity|app|deploy"
)
_TABLE = re.compile(rf"\b(FROM|JOIN|INTO|UPDATE)\s+({_TABLES})\b")

PLACED = (
    "id",
    "arguments",
    "namespace",
    "app",
    "job",
    "job_version",
    "actor",
    "queue",
    "lane",
    "priority",
    "run_at",
    "deadline",
    "key",
    "parent",
    "replay_of",
    "schedule",
    "tick",
    "catch_up",
    "tags",
    "trace",
    "headers",
    "overrides",
)
"""The columns of `execution` that a new row may have. Every INSERT is made from this list."""


@cache
def load(dialect: str, schema: str = "rota") -> dict[str, tuple[str, ...]]:
    """Every statement that `dialect` uses, by name. `schema` is where PostgreSQL has the tables."""
    general: dict[str, tuple[str, ...]] = {}
    special: dict[str, tuple[str, ...]] = {}
    for file in sorted((resources.files("rota.store") / "queries").iterdir(), key=lambda file: file.name):
        pieces = _HEADER.split(file.read_text())
        for name, variant, body in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
            if variant in (None, dialect):
                target = special if variant else general
                assert name not in target, f"statement {name} is defined twice"
                target[name] = tuple(_expand(text, dialect, schema) for text in _texts(body))
    return general | special


def _texts(body: str) -> list[str]:
    return [text.strip() for text in _COMMENT.sub("", body).split(";") if text.strip()]


def _expand(text: str, dialect: str, schema: str) -> str:
    text = _LIVE.sub(r"\1.stopped_at IS NULL AND \1.state = 'live' AND \1.lease_until > :now", text)
    text = _PLACED.sub(lambda found: _placed_values(found[1]), text)
    text = text.replace("PLACED", ", ".join(PLACED))
    if dialect == "sqlite":
        text = _LOCK.sub("", text).replace("FOUND(", "instr(").replace("GREATEST(", "max(")
        text = text.replace("LISTING(", "json_group_array(").replace("PAIR(", "json_array(")
        text = _LISTED.sub(r"\1 IN (SELECT value FROM json_each(\2))", text)
        text = _EACH.sub(lambda found: _json_table(found[1], found[2]), text)
        text = _KEYS.sub(r"(SELECT key AS \2 FROM json_each(:\1))", text)
        text = _PAIRS.sub(r"(SELECT key AS \2, value AS \3 FROM json_each(:\1))", text)
        return _AMONG.sub(r"IN (SELECT value FROM json_each(:\1))", text)
    text = _EACH.sub(lambda found: _array_table(found[1], found[2]), _DICTIONARY.sub("EACH(", text))
    text = _AMONG.sub(r"= ANY(CAST(:\1 AS \2[]))", text)
    text = text.replace("FOUND(", "strpos(").replace("LISTING(", "json_agg(").replace("PAIR(", "json_build_array(")
    text = _LISTED.sub(r"jsonb_exists(CAST(\2 AS jsonb), \1)", text)
    text = text.replace("SCHEMA()", "".join(("'", schema.replace("'", "''"), "'")))
    # SQLite joins in the written order only if told so; PostgreSQL decides by itself.
    return qualified(text.replace("CROSS JOIN", "JOIN"), schema)


def qualified(text: str, schema: str) -> str:
    """`text` with the schema before every one of Rota's tables."""
    return _TABLE.sub(lambda found: "".join((found[1], ' "', schema, '".', found[2])), text)


def _placed_values(given: str) -> str:
    named = {re.split(r"[ .]", value)[-1]: value.partition(" AS ")[0] for value in re.split(r",\s+", given)}
    assert named.keys() <= set(PLACED), given
    return ", ".join(named.get(column, f":{column}") for column in PLACED)


def _json_table(parameter: str, columns: str) -> str:
    names = [column.split()[0] for column in columns.split(", ")]
    values = ", ".join(f"value ->> {index} AS {name}" for index, name in enumerate(names))
    return "".join(("(SELECT ", values, " FROM json_each(:", parameter, "))"))


def _array_table(parameter: str, columns: str) -> str:
    pairs = [column.split() for column in columns.split(", ")]
    arrays = ", ".join(f"CAST(:{parameter}_{index} AS {kind}[])" for index, (_, kind) in enumerate(pairs))
    names = ", ".join(name for name, _ in pairs)
    return "".join(("(SELECT * FROM unnest(", arrays, ") AS u (", names, "))"))
