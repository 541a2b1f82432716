"""Named statements from `queries/*.sql`, translated to the SQL of one database.

A block starts with `-- name: some_name`, optionally followed by `@sqlite` or `@postgres` for a variant that only
this database uses. A block may hold several statements; they run in order, as one step of an operation.

These notations let one text serve both databases:

    EACH(:rows, id uuid, fence bigint)   a table with these columns, made from a list of tuples
    PAIRS(:texts, id uuid, name text)    the same with two columns, made from a dictionary: SQLite reads that faster
    KEYS(:texts, id uuid)                a table of the keys of a dictionary
    e AS ITEMS(:items, id uuid, arguments text), COUNT(e)
                                         the same in a WITH clause, and the number of its rows. Such a statement has a
                                         twin `…_single` for one row, whose columns are parameters
    x.id AMONG(:ids, uuid)               whether a value is in a list
    :now, :clock                         the time when the transaction began; on PostgreSQL, the time when the statement
                                         runs. There an operation whose first statement needs `:now` costs one round
                                         trip more
    :returned                            SQLite, from the second statement on: the first column that the first returned
    LIVE(w)                              whether a worker may claim: not stopped, not draining, lease not expired
    SERVES(w, x.namespace)               whether a worker serves a namespace
    PLACED                               the columns of `execution` that `ops/place.py` fills
    PLACED(e.id, r.version AS number)    the same as values: these, and the parameter `:column` for all others
    PRUNED(x, f)                         whether an execution x (with its end f) is one of `:ids`. PostgreSQL also has
                                         a statement `…_of_day`: all from `:low` to `:high` except `:kept`
    NEEDLESS(x)                          whether no open run refers to an execution x
    LISTED(x.name, x.list)               whether a value is in a stored JSON array
    RUNS(w, x.job, x.requirements, x.runs)  whether a worker can run a job (x.runs: what it needs for that, if that is
                                         not the job itself), or the job is a `:workflow`
    FOUND(text, part)                    the position of a part in a text, from 1; 0 if there is none
    LISTING(x), PAIR(x, y)               a JSON array of the values of all rows; a JSON array of two values
    TEXTS(x, ',')                        the values of all rows as one text
    TABLE_OF_USER                        a table that is not Rota's: `on_table` replaces it by the name of the table
    WITHIN(x.id)                         PostgreSQL: between `:lowest` and `:highest`, the ends of a list of ids. Then
                                         only the partitions between them are opened
    x.id PAST :after, x.id UNTIL :end,   behind a position of a list, up to its end, in its order: `<`, `>=` and DESC.
    ORDER BY x.id WAY                    Such a statement has a twin `…_asc` with `>`, `<=` and ASC
    HEADS(text, ready x WHERE true)      the next ids of a table in both directions, behind a position for each of
                                         `:heads`, which have this type. The condition may use `h.head`
    LATERAL[SELECT … AS value …] e       a subquery with one column, which may refer to the tables before it
    … FOR UPDATE OF x                    only on PostgreSQL: SQLite has one writer, which need not lock rows

SQLite gets a list as one JSON value, PostgreSQL as arrays, one for each column. A dictionary goes to SQLite as one
object, whose keys and values `json_each` returns, and to PostgreSQL as two arrays, or one of its values.

On PostgreSQL every table is qualified with its schema, so that no statement depends on the search path: it may run in a
caller's own transaction or behind a pooler.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import resources

_FOLDER = resources.files("rota.store")
_HEADER = re.compile(r"^-- name: (\w+)(?: @(\w+))?[ \t]*$", re.MULTILINE)
_COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)
_EACH = re.compile(r"EACH\(:(\w+), ([^()]+)\)")
_PAIRS = re.compile(r"PAIRS\(:(\w+), (\w+) \w+, (\w+) \w+\)")
_DICTIONARY = re.compile(r"\b(?:PAIRS|KEYS)\(")
_ITEMS = re.compile(r"\bITEMS\((:\w+), (\w+) (\w+), (\w+) (\w+)\)")
_MANY = {"sqlite": r"PAIRS(\1, \2 \3, \4 \5)", "postgres": r"MATERIALIZED (SELECT * FROM PAIRS(\1, \2 \3, \4 \5) u)"}
_SINGLE = {
    "sqlite": r"(SELECT :\2 AS \2, :\4 AS \4)",
    "postgres": r"(SELECT CAST(:\2 AS \3) AS \2, CAST(:\4 AS \5) AS \4)",
}
_COUNT = re.compile(r"\bCOUNT\((\w+)\)")
_KEYS = re.compile(r"KEYS\(:(\w+), (\w+) \w+\)")
_AMONG = re.compile(r"AMONG\(:(\w+), (\w+)\)")
_PLACED = re.compile(r"PLACED\(([^()]+)\)")
_LISTED = re.compile(r"LISTED\(([\w.:]+), ([\w.]+)\)")
_NEEDLESS = re.compile(r"NEEDLESS\((\w+)\)")
_BY_NO_RUN = (
    r"(NOT EXISTS (SELECT 1 FROM run n WHERE n.id = \1.run) AND \1.id NOT IN"
    r" (SELECT s.execution FROM run n JOIN step s ON s.run = n.id WHERE n.retry_of IS NOT NULL)"
    # The steps of an ended run are kept while the run at its root, or a retry of that run, is open: an undo refers to
    # steps of ended sub-runs, and the retry of a sub-run opens later than the retry of the run above it.
    r" AND coalesce((SELECT o.root FROM run_ended o WHERE o.id = \1.run), \1.id) NOT IN"
    r" (SELECT n.id FROM run n UNION ALL SELECT q.id FROM ("
    r"WITH RECURSIVE retried (id) AS (SELECT n.retry_of FROM run n WHERE n.retry_of IS NOT NULL AND n.depth = 0"
    r" UNION SELECT k.replay_of FROM retried r JOIN execution k ON k.id = r.id WHERE k.replay_of IS NOT NULL)"
    r" SELECT r.id FROM retried r) q))"
)
_RUNS = re.compile(r"RUNS\((\w+), ([\w.]+), ([\w.]+), ([\w.]+)\)")
_SERVES = re.compile(r"SERVES\((\w+), ([\w.:]+)\)")
_LIVE = re.compile(r"LIVE\((\w+)\)")
_LOCK = re.compile(r"\s+FOR (?:UPDATE|NO KEY UPDATE|SHARE|KEY SHARE)(?: OF \w+)?(?: SKIP LOCKED)?")
_PRUNED = re.compile(r"PRUNED\((\w+), (\w+)\)")
_BY_IDS = r"\1.id >= :lowest AND \1.id <= :highest AND \1.id AMONG(:ids, uuid)"
_OF_DAY = (
    r"\1.id >= :low AND \1.id < :high AND \2.id >= :low AND \2.id < :high"
    r" AND NOT EXISTS (SELECT 1 FROM EACH(:kept, id uuid) k WHERE k.id = \1.id)"
)
_LATERAL = re.compile(r"LATERAL\[([^\]]*)\]")
_HEADS = re.compile(r"HEADS\((\w+), ([^()]+)\)")
_NEXT_IDS = (
    r"SELECT h.head, e.value FROM EACH(:heads, head \1, after uuid) h CROSS JOIN LATERAL["
    r"SELECT x.id AS value FROM \2 AND x.id PAST h.after AND x.id >= :lowest AND x.id <= :highest"
    r" ORDER BY x.id WAY LIMIT :most] e ON true"
)
_WITHIN = re.compile(r"WITHIN\(([\w.]+)\)")
_DIRECTED = re.compile(r"\b(PAST|UNTIL|WAY)\b")
_WAYS = {"": {"PAST": "<", "UNTIL": ">=", "WAY": "DESC"}, "_asc": {"PAST": ">", "UNTIL": "<=", "WAY": "ASC"}}
_CREATED = re.compile(r"^CREATE (?:TABLE|VIEW) (\w+)", re.MULTILINE)

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
    "upstream",
    "event",
    "callback",
)
"""The columns of `execution` that every INSERT in `queries/enqueue.sql` fills, with `created_at`.

The statement `place` also fills the columns of a step: run, step, map_index and inputs. The SQL function `enqueue` of
PostgreSQL does not use this list: it names its columns itself.
"""


@cache
def load(dialect: str, schema: str = "rota") -> dict[str, tuple[str, ...]]:
    """Every statement that `dialect` uses, by name. `schema` is where PostgreSQL has the tables."""
    general: dict[str, tuple[str, ...]] = {}
    special: dict[str, tuple[str, ...]] = {}
    for file in sorted((_FOLDER / "queries").iterdir(), key=lambda file: file.name):
        pieces = _HEADER.split(file.read_text())
        for name, variant, body in _twins(zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True), dialect):
            if variant in (None, dialect):
                target = special if variant else general
                assert name not in target, f"statement {name} is defined twice"
                target[name] = tuple(_expand(text, dialect, schema) for text in _texts(_PRUNED.sub(_BY_IDS, body)))
                if dialect == "postgres" and _PRUNED.search(body):
                    of_day = _texts(_PRUNED.sub(_OF_DAY, body))
                    target[f"{name}_of_day"] = tuple(_expand(text, dialect, schema) for text in of_day)
    return general | special


def _twins(blocks: Iterable[tuple[str, str, str]], dialect: str) -> Iterator[tuple[str, str, str]]:
    """A list that is read in both directions is two statements, and so is an insert of many rows or a single one."""
    for name, variant, short in blocks:
        body = _HEADS.sub(_NEXT_IDS, short)
        if _DIRECTED.search(body):
            for ending, words in _WAYS.items():
                pieces = _DIRECTED.split(body)
                yield name + ending, variant, "".join(words.get(piece, piece) for piece in pieces)
        else:
            yield name, variant, _COUNT.sub(r"(SELECT count(*) FROM \1)", _ITEMS.sub(_MANY[dialect], body))
            if _ITEMS.search(body):
                yield f"{name}_single", variant, _COUNT.sub("1", _ITEMS.sub(_SINGLE[dialect], body))


def _texts(body: str) -> list[str]:
    return [text.strip() for text in _COMMENT.sub("", body).split(";") if text.strip()]


def _expand(text: str, dialect: str, schema: str) -> str:
    text = needless(text)
    live = r"\1.stopped_at IS NULL AND \1.state = 'live' AND \1.lease_until > "
    # With the clock of the statement, BEGIN can travel with a claim.
    text = _LIVE.sub(live + (":now" if dialect == "sqlite" else ":clock"), text)
    text = _SERVES.sub(r"(\1.namespace = \2 OR (\1.others <> '[]' AND LISTED(\2, \1.others)))", text)
    text = _RUNS.sub(r"(\3 = :workflow OR (\4 IS NULL AND LISTED(\2, \1.jobs)) OR LISTED(\4, \1.jobs))", text)
    text = _PLACED.sub(lambda found: _placed_values(found[1]), text)
    text = text.replace("PLACED", ", ".join(PLACED))
    if dialect == "sqlite":
        text = _WITHIN.sub("true", text)
        text = _LATERAL.sub(r"json_each((SELECT json_group_array(value) FROM (\1)))", text)
        text = _LOCK.sub("", text).replace("FOUND(", "instr(").replace("GREATEST(", "max(")
        text = text.replace("LISTING(", "json_group_array(").replace("PAIR(", "json_array(")
        text = text.replace("TEXTS(", "group_concat(")
        text = _LISTED.sub(r"\1 IN (SELECT value FROM json_each(\2))", text)
        text = _EACH.sub(lambda found: _json_table(found[1], found[2]), text)
        text = _KEYS.sub(r"(SELECT key AS \2 FROM json_each(:\1))", text)
        text = _PAIRS.sub(r"(SELECT key AS \2, value AS \3 FROM json_each(:\1))", text)
        return _AMONG.sub(r"IN (SELECT value FROM json_each(:\1))", text)
    text = _WITHIN.sub(r"\1 >= :lowest AND \1 <= :highest", text)
    text = _LATERAL.sub(r"LATERAL (\1)", text)
    text = _EACH.sub(lambda found: _array_table(found[1], found[2]), _DICTIONARY.sub("EACH(", text))
    text = _AMONG.sub(r"= ANY(CAST(:\1 AS \2[]))", text)
    text = text.replace("FOUND(", "strpos(").replace("LISTING(", "json_agg(").replace("PAIR(", "json_build_array(")
    text = text.replace("TEXTS(", "string_agg(")
    text = _LISTED.sub(r"jsonb_exists(CAST(\2 AS jsonb), \1)", text)
    text = text.replace("SCHEMA()", "".join(("'", schema.replace("'", "''"), "'")))
    # CROSS JOIN makes SQLite join in the written order; PostgreSQL chooses the order itself.
    return qualified(text.replace("CROSS JOIN", "JOIN"), schema)


def on_table(text: str, table: str) -> str:
    """`text` with the name of a table in place of TABLE_OF_USER. The caller has checked the name, which may have a
    schema."""
    return text.replace("TABLE_OF_USER", ".".join(f'"{part}"' for part in table.split(".")))


def needless(text: str) -> str:
    """`text` with NEEDLESS(x) spelt out."""
    return _NEEDLESS.sub(_BY_NO_RUN, text)


def qualified(text: str, schema: str) -> str:
    """`text` with the schema before each of Rota's tables."""
    return _table_reference().sub(lambda found: "".join((found[1], ' "', schema, '".', found[2])), text)


@cache
def _table_reference() -> re.Pattern[str]:
    """Matches the name of one of Rota's tables where a statement refers to it."""
    schema = "\n".join(file.read_text() for file in (_FOLDER / "migrations" / "postgres").iterdir())
    tables = _CREATED.findall(schema)
    return re.compile(rf"\b(FROM|JOIN|INTO|UPDATE)\s+({'|'.join((*tables, 'migration'))})\b")


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
