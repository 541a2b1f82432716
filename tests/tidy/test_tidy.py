"""Style as a test: each rule is held against the repository, and against a small violation of its own."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import pytest

from tests.tidy import rules
from tests.tidy.rules import Finding

pytestmark = pytest.mark.xdist_group("tidy")  # Each file is read and parsed once.
REPOSITORY = Path(__file__).resolve().parents[2]

Rule = Callable[[str, str], list[Finding]]


@cache
def sources(folder: str, pattern: str = "*.py") -> dict[str, str]:
    paths = sorted((REPOSITORY / folder).rglob(pattern))
    return {path.relative_to(REPOSITORY).as_posix(): path.read_text("utf-8") for path in paths}


def text_files() -> Iterable[tuple[str, str]]:
    """Everything that is, or could be, committed and is text."""
    for name in committable_files():
        path = REPOSITORY / name
        try:
            source = path.read_text("utf-8") if path.is_file() else ""
        except UnicodeDecodeError:
            continue
        if "\0" not in source:
            yield name, source


def committable_files() -> list[str]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    if shutil.which("git"):
        answer = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
        if answer.returncode == 0:
            return [name for name in answer.stdout.split("\0") if name]
    # Without git, as in an unpacked archive, the folders that hold the product have to do.
    folders = [REPOSITORY / name for name in ("src", "tests", "docs", "examples", "benchmarks", "scripts")]
    paths = [path for folder in folders for path in folder.rglob("*") if "__pycache__" not in path.parts]
    return [path.relative_to(REPOSITORY).as_posix() for path in paths if path.is_file()]


def assert_none(findings: Iterable[Finding]) -> None:
    listed = [str(finding) for finding in findings]
    if listed:
        pytest.fail("\n".join([f"{len(listed)} found", *listed]), pytrace=False)


def hold(rule: Rule, *folders: str) -> None:
    files = {path: source for folder in folders for path, source in sources(folder).items()}
    assert files, f"nothing to check in {folders}"
    assert_none(finding for path, source in files.items() for finding in rule(path, source))


# --- The repository keeps the rules ---------------------------------------------------------------


def test_only_the_store_speaks_sql() -> None:
    hold(rules.sql_outside_store, "src/rota")


def test_sql_is_never_glued_together() -> None:
    hold(rules.glued_sql, "src/rota")


def test_named_statements_are_used_and_unique() -> None:
    assert_none(rules.statements(sources("src/rota/store/queries", "*.sql"), sources("src/rota")))


def test_time_and_chance_come_from_the_clock() -> None:
    hold(rules.clock_and_randomness, "src/rota")


def test_domain_store_and_ops_are_synchronous() -> None:
    hold(rules.asyncio_in_synchronous_packages, "src/rota")


def test_the_domain_is_pure() -> None:
    hold(rules.impure_domain, "src/rota")


def test_types_are_prepared_before_threads_decode_them() -> None:
    assert_none(rules.late_types(sources("src/rota")))


def test_files_and_functions_are_short() -> None:
    hold(rules.too_long, "src/rota")


def test_imports_stand_at_the_top() -> None:
    hold(rules.import_in_function, "src/rota")


def test_nothing_is_left_to_do() -> None:
    hold(rules.leftovers, "src/rota", "tests")


def test_sentences_name_their_subject() -> None:
    """In all text of the repository, except where this folder names the words."""
    files = {path: source for path, source in text_files() if not path.startswith("tests/tidy/")}
    assert_none(finding for path, source in files.items() for finding in rules.words_without_subject(path, source))


def test_no_file_names_a_folder_of_a_machine() -> None:
    assert_none(finding for path, source in text_files() for finding in rules.machine_paths(path, source))


def test_tests_do_not_sleep() -> None:
    hold(rules.sleeping_tests, "tests")


# --- The rules find what they are meant to find ---------------------------------------------------

OPS = "src/rota/ops/finish.py"
STORE = "src/rota/store/sqlite/store.py"
DOMAIN = "src/rota/domain/retry.py"
TEST = "tests/test_something.py"


def lines_found(rule: Rule, path: str, source: str) -> list[int]:
    return [finding.line for finding in rule(path, source)]


@pytest.mark.parametrize(
    "source",
    [
        "x = 'SELECT id FROM ready'",
        "x = 'select id from ready'",
        "x = f'SELECT {columns} FROM {table}'",
        "x = 'INSERT INTO ready VALUES (1)'",
        "x = 'UPDATE ready SET rank = 1'",
        "x = 'DELETE FROM ready'",
        "x = 'CREATE TABLE ready (id)'",
        "x = 'PRAGMA journal_mode'",
        "x = 'SAVEPOINT one'",
        "x = '''\n  WITH moved AS (SELECT 1)\n'''",
    ],
)
def test_sql_outside_the_store_is_found(source: str) -> None:
    assert lines_found(rules.sql_outside_store, OPS, source) == [1]
    assert lines_found(rules.sql_outside_store, STORE, source) == []


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    'A docstring may say SELECT id FROM ready.'",
        "x = 'Select a job from the list'",
        "x = 'Update the queue and set its limit'",
        "x = 'could not delete from here'",
        "x = 'finish'",
    ],
)
def test_prose_is_not_sql(source: str) -> None:
    assert lines_found(rules.sql_outside_store, OPS, source) == []


@pytest.mark.parametrize(
    "source",
    [
        "c.execute(f'{verb} x')",
        "c.execute('a' + table)",
        "c.executemany('a %s' % table, rows)",
        "c.executescript('a {}'.format(table))",
        "statement = f'SELECT * FROM {table}'",
        "statement = 'DELETE FROM ' + table",
        "statement = 'DELETE FROM {}'.format(table)",
    ],
)
def test_glued_sql_is_found(source: str) -> None:
    assert lines_found(rules.glued_sql, STORE, source) == [1]


@pytest.mark.parametrize(
    "source",
    [
        "c.execute('SELECT id FROM ready WHERE id = ?', (a + b,))",
        "c.execute(sql['claim'], {})",
        "x = f'{a} + {b}'",
    ],
)
def test_whole_statements_are_not_glued(source: str) -> None:
    assert lines_found(rules.glued_sql, STORE, source) == []


def test_unused_and_repeated_statements_are_found() -> None:
    queries = {
        "q/a.sql": "-- name: claim @sqlite\nSELECT 1;\n-- name: claim @postgres\nSELECT 1;\n",
        "q/b.sql": "-- name: claim @sqlite\nSELECT 2;\n-- name: forgotten\nSELECT 3;\n-- name: x @oracle\n",
    }
    found = rules.statements(queries, {OPS: "tx.run('claim')"})
    assert [str(finding) for finding in found] == [
        "q/b.sql:1: statement 'claim' is already defined in q/a.sql:1",
        "q/b.sql:3: statement 'forgotten' is not used",
        "q/b.sql:5: not a heading of a statement: -- name: x @oracle",
    ]


@pytest.mark.parametrize(
    "source",
    [
        "import time; time.time()",
        "import time as t; t.monotonic_ns()",
        "from time import perf_counter",
        "from time import *",
        "import time; wait = time.sleep",
        "import datetime; datetime.datetime.now()",
        "import datetime as dt; dt.date.today()",
        "from datetime import datetime; datetime.utcnow()",
        "import random",
        "from random import choice",
        "import secrets",
        "import os; os.urandom(8)",
        "from uuid import uuid4",
        "import uuid; uuid.uuid1()",
    ],
)
def test_clocks_and_randomness_are_found(source: str) -> None:
    assert set(lines_found(rules.clock_and_randomness, OPS, source)) == {1}
    assert lines_found(rules.clock_and_randomness, "src/rota/clock.py", source) == []


def test_a_given_clock_is_not_found() -> None:
    source = "from datetime import datetime\nfrom uuid import UUID\nimport time\nnow = clock.time()"
    assert lines_found(rules.clock_and_randomness, OPS, source) == []


@pytest.mark.parametrize("source", ["import asyncio", "from asyncio import Event", "def f():\n import asyncio.queues"])
def test_asyncio_in_a_synchronous_package_is_found(source: str) -> None:
    for path in (DOMAIN, STORE, OPS):
        assert len(rules.asyncio_in_synchronous_packages(path, source)) == 1
    assert rules.asyncio_in_synchronous_packages("src/rota/engine/loop.py", source) == []


@pytest.mark.parametrize(
    "source",
    [
        "import os",
        "import sqlite3",
        "from pathlib import Path",
        "import logging.handlers",
        "from urllib import request",
        "from rota.clock import Clock",
        "from rota import clock",
        "from ..store import port",
        "from .. import config",
        "import rota",
    ],
)
def test_an_impure_domain_is_found(source: str) -> None:
    assert lines_found(rules.impure_domain, DOMAIN, source) == [1]
    assert lines_found(rules.impure_domain, OPS, source) == []


def test_a_pure_domain_is_not_found() -> None:
    source = """
from __future__ import annotations
from collections.abc import Iterable
from rota.domain import errors
from rota.domain.rank import Rank
from . import lifecycle
from .errors import Refused
import msgspec, math, zoneinfo
"""
    assert rules.impure_domain(DOMAIN, source) == []


@pytest.mark.parametrize(
    "call",
    [
        "msgspec.json.decode(x, type=Late)",
        "msgspec.convert(x, list[Late], strict=False)",
        "msgspec.json.Decoder(Late).decode(x)",
    ],
)
def test_types_that_are_not_prepared_are_found(call: str) -> None:
    late = f"def f(x):\n    return {call}\n"
    assert [finding.line for finding in rules.late_types({OPS: late})] == [1]
    assert rules.late_types({OPS: late, DOMAIN: "prepare(Late)"}) == []
    assert rules.late_types({OPS: f"_decoder = msgspec.json.Decoder(Late)\n{late}"}) == []
    assert rules.late_types({OPS: late.replace("Late", "list[int]")}) == []


def test_long_files_and_functions_are_found() -> None:
    function = "async def long():\n" + "    pass\n" * 60
    assert [finding.message for finding in rules.too_long(OPS, function)] == ["function long of 61 lines, more than 60"]
    assert lines_found(rules.too_long, OPS, "x = 1\n" * 451) == [1]
    assert lines_found(rules.too_long, OPS, "x = 1\n" * 450) == []


def test_imports_in_functions_are_found() -> None:
    bare = "import os\ndef f():\n    if x:\n        import rich\n"
    assert lines_found(rules.import_in_function, OPS, bare) == [4]
    assert lines_found(rules.import_in_function, "src/rota/cli/main.py", bare) == []
    assert lines_found(rules.import_in_function, OPS, "def f():\n    import rich  # lazy:\n") == [2]
    assert lines_found(rules.import_in_function, OPS, "def f():\n    import rich  # lazy: an extra\n") == []
    assert lines_found(rules.import_in_function, OPS, "def f():\n    # lazy: an extra\n    import rich\n") == []


@pytest.mark.parametrize("word", ["TO" + "DO", "FIX" + "ME", "XX" + "X"])
def test_what_is_left_to_do_is_found(word: str) -> None:
    assert lines_found(rules.leftovers, OPS, f"x = 1\n# {word}: later\n") == [2]
    assert lines_found(rules.leftovers, OPS, f"x = 'A{word}B'\n") == []


@pytest.mark.parametrize("words", ["whoever asks", "Nobody waits", "it goes on", "who is told", "comes to nothing"])
def test_sentences_without_a_subject_are_found(words: str) -> None:
    assert lines_found(rules.words_without_subject, OPS, f"x = 1\n# {words}.\n") == [2]
    assert lines_found(rules.words_without_subject, TEST, f"def test_{words.lower().replace(' ', '_')}(): ...\n") == [1]
    assert lines_found(rules.words_without_subject, OPS, "# The worker tells the caller, and resumes.\n") == []
    assert lines_found(rules.words_without_subject, TEST, "pwd.getpwnam('nobody')\n") == []


@pytest.mark.parametrize("folder", ["home", "root", "work", "Users"])
def test_folders_of_machines_are_found(folder: str) -> None:
    assert lines_found(rules.machine_paths, "docs/guide.md", f"first\ncd /{folder}/alice/rota\n") == [2]
    assert lines_found(rules.machine_paths, "docs/guide.md", f"see https://example.org/{folder}/page\n") == []


@pytest.mark.parametrize(
    "source",
    [
        "import time; time.sleep(1)",
        "import asyncio; asyncio.sleep(0.1, None)",
        "from asyncio import sleep as nap; nap(60 * 2)",
        "import asyncio; asyncio.sleep(1)  # sleep:",
        "import asyncio; asyncio.sleep(delay=1)",
    ],
)
def test_sleeping_tests_are_found(source: str) -> None:
    assert lines_found(rules.sleeping_tests, TEST, source) == [1]


@pytest.mark.parametrize(
    "source",
    [
        "import asyncio; asyncio.sleep(0)",
        "import asyncio; asyncio.sleep(delay)",
        "import time; time.sleep(1)  # sleep: stands for slow user code",
        "clock.sleep(1)",
    ],
)
def test_reasonable_sleeps_are_not_found(source: str) -> None:
    assert lines_found(rules.sleeping_tests, TEST, source) == []


def test_all_that_runs_is_locked() -> None:
    """With the extras, which `make run` and an installation from the lock are to have as well."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    locked = re.findall(r"^([a-z0-9-]+)==", (REPOSITORY / "requirements" / "run.txt").read_text("utf-8"), re.MULTILINE)
    assert {re.split(r"[^a-z0-9-]", one)[0] for one in wanted} <= set(locked)
