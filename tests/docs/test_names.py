"""Every name between backticks exists: attributes, calls and their options, files, settings, statuses and other words.

Names are looked up in objects that a test makes, and in the source, so that no list of them is kept here.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import keyword
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
import psycopg
import pytest

import rota
import rota.workflow
from rota.api.routes import ROUTES
from rota.config import Settings
from rota.domain import blocker
from rota.domain.status import Reason, Status
from rota.domain.tick_policy import TickOutcome
from rota.executors.http.request import Request
from rota.executors.process.command import Command
from rota.ops import blockers
from rota.sdk.declaration import FunctionOptions
from rota.sdk.workflow.declaring import WorkflowOptions
from rota.testing import harness
from tests.docs.pages import REPOSITORY, inline_code, pages, prose, table

pytestmark = pytest.mark.xdist_group("docs names")  # What all of these tests look up is collected once.
PAGES = [page for page in pages() if page == "README.md" or re.fullmatch(r"docs/[\w-]+\.md", page)]


# --- Objects that a reader has --------------------------------------------------------------------


@cache
def objects() -> dict[str, Any]:
    """What the names at the start of an expression stand for on the pages."""
    app = rota.App("names", url="sqlite://:memory:")
    seen: list[rota.Context] = []

    @app.job
    def job(ctx: rota.Context) -> None:
        seen.append(ctx)

    @app.workflow
    def workflow() -> None:
        job.step()

    with harness(app, inline=True) as inside:
        handle, run = job.enqueue(), workflow.start()
        schedule = app.schedule(job, name="nightly", cron="0 2 * * *")
    jobs = dict.fromkeys(("job", "send", "report", "charge"), job)
    flow = {"workflow": workflow, "run": run}
    return {
        "app": app,
        "ctx": seen[0],
        "handle": handle,
        "x": handle,
        "schedule": schedule,
        **jobs,
        "harness": inside,
        **flow,
    }


def looked_up(root: str) -> list[Any]:
    """What a name at the start may mean: an object of the reader's, or a module."""
    if root == "rota":
        return [rota, objects()["harness"]]
    if root == "conn":
        return [psycopg.Connection]
    if root == "blockers":
        return [blockers]
    if root in objects():
        return [objects()[root]]
    try:
        return [importlib.import_module(root)]
    except ImportError:
        return []


def attribute(owner: Any, name: str) -> Any:
    """An attribute, or a module inside a package."""
    try:
        return getattr(owner, name)
    except AttributeError:
        if inspect.ismodule(owner):
            return importlib.import_module(f"{owner.__name__}.{name}")
        raise


def keywords(function: Any) -> set[str]:
    """The names of everything that a call takes, those in a TypedDict included."""
    app = objects()["app"]
    if function in (app.command, app.http, app.run_by, app.job, app.workflow):
        return OPTIONS
    found: set[str] = set()
    for parameter in inspect.signature(function).parameters.values():
        found.add(parameter.name)
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            hints = get_type_hints(function).get(parameter.name)
            unpacked = get_args(hints)
            found |= {name for one in unpacked for name in get_type_hints(one)} if unpacked else {"kwargs"}
    return found


RENAMED = {"retry_codes", "memory", "grace", "target", "parameters"}
OPTIONS = {
    *get_type_hints(FunctionOptions),
    *get_type_hints(WorkflowOptions),
    *Command.__struct_fields__,
    *Request.__struct_fields__,
    *RENAMED,
}


@cache
def public() -> dict[str, list[Any]]:
    """By name: every attribute of the objects, and everything that `rota`, `rota.workflow` and `rota.testing` have."""
    found: dict[str, list[Any]] = {"harness": [harness]}
    for module in (rota, rota.workflow):
        for name in module.__all__:
            found.setdefault(name, []).append(getattr(module, name))
    for one in {id(value): value for value in (*objects().values(), objects()["app"].dead)}.values():
        for name in dir(one):
            if not name.startswith("_"):
                found.setdefault(name, []).append(getattr(one, name, None))
    return found


@cache
def all_keywords() -> set[str]:
    callables = [value for values in public().values() for value in values if callable(value)]
    found = {*OPTIONS, *Settings.__struct_fields__}
    for value in callables:
        try:
            found |= keywords(value)
        except ValueError:  # A class of Python's own has no signature.
            continue
    return found


# --- Expressions ----------------------------------------------------------------------------------

ELSEWHERE = {"django", "transaction", "connections", "shop"}
"""Roots of expressions that are not Rota's and not installed with it, and an app of the examples."""
_FILE = re.compile(r"[\w.*/-]+\.(py|sql|md|toml|db[\w*-]*/?)")


def expressions(page: str) -> Iterator[tuple[str, ast.expr]]:
    """Code that reads as Python: an attribute or a call."""
    for code in inline_code(page):
        text = re.sub(r"^(@|await |async with |with )|( as \w+)?:$", "", code).replace("…", "...")
        text = f"job{text}" if text.startswith(".options") else text
        if _FILE.fullmatch(code) or not re.search(r"[.(]", text) or not re.match(r"[a-zA-Z_]", text):
            continue
        try:
            yield code, ast.parse(text, mode="eval").body
        except SyntaxError:
            continue


def wrong_with(expression: ast.expr) -> list[str]:
    """What does not exist in an expression."""
    try:
        meanings(expression)
    except (AttributeError, ImportError) as error:
        return [str(error)]
    wrong = []
    for call in ast.walk(expression):
        if isinstance(call, ast.Call):
            given = {one.arg for one in call.keywords if one.arg}
            known = [keywords(function) for function in meanings(call.func) if callable(function)] if given else []
            if known and not any(given <= names or "kwargs" in names for names in known):
                wrong.append(f"{ast.unparse(call.func)} does not take {', '.join(sorted(given - known[0]))}")
    return wrong


def meanings(expression: ast.expr) -> list[Any]:
    """The objects that an expression may stand for; none if it is not about Rota. Raises if an attribute is missing."""
    match expression:
        case ast.Name(id=name):
            return public().get(name) or looked_up(name)
        case ast.Attribute(value=ast.Name(id=name)) if name in ELSEWHERE:
            return []
        case ast.Attribute(value=ast.Name(id=name), attr=attr):
            return found_in(looked_up(name), name, attr)
        case ast.Attribute(value=value, attr=attr):
            return found_in(meanings(value), ast.unparse(value), attr)
        case ast.Call(func=function):
            # `job.options(…)` and `job.within(…)` are jobs again, those of a workflow are workflows.
            called = meanings(function)
            is_job = any(getattr(one, "__name__", "") in ("options", "within") for one in called)
            return [objects()["job"], objects()["workflow"]] if is_job else []
        case _:
            return []


def found_in(owners: list[Any], name: str, attr: str) -> list[Any]:
    found = []
    for owner in owners:
        try:
            found.append(attribute(owner, attr))
        except (AttributeError, ImportError):
            continue
    if owners and not found:
        raise AttributeError(f"{name} has no {attr}")
    return found


@pytest.mark.parametrize("page", PAGES)
def test_attributes_and_options_of_calls_exist(page: str) -> None:
    wrong = [f"`{code}`: {problem}" for code, expression in expressions(page) for problem in wrong_with(expression)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "code",
    [
        "ctx.dealine",
        "app.dead.reply",
        "rota.Contexts",
        "rota.testing.harnes",
        "x.results()",
        "send.options(dealy='1h')",
        "app.http('a', 'b', methods='GET')",
        "send.options(delay='1h').inside(conn)",
        "harness(app, line=True)",
        "Exponential(bas=2)",
        "os._exitt(0)",
    ],
)
def test_a_wrong_name_is_found(code: str) -> None:
    assert wrong_with(ast.parse(code, mode="eval").body)


def test_expressions_are_found() -> None:
    found = {code for page in PAGES for code, _ in expressions(page)}
    assert {"ctx.enqueue(job, …)", "app.handle(id)", "rota.executors.port.Executor", "harness(app, http=…)"} <= found


def test_the_table_of_the_context_names_what_it_has() -> None:
    """Methods also with the names of their parameters."""
    context = objects()["ctx"]
    for row in table("docs/jobs.md", "The context"):
        for name, parameters in re.findall(r"(\w+)(?:\(([^)]*)\))?(?:`|$)", row[0].replace("`, `", "` `")):
            found = getattr(context, name)
            named = {part.strip() for part in parameters.split(",")} - {"…", ""}
            assert not named or named <= set(inspect.signature(found).parameters), name


# --- Options alone --------------------------------------------------------------------------------

OTHERS_OPTIONS = """
    sslmode schema synchronous KillMode LimitRTTIME v1 CRON_TZ API_KEY
    count to code items gpu kind asyncio_mode
"""
"""Of PostgreSQL, systemd, pytest and other programs, and arguments of jobs in examples."""


@pytest.mark.parametrize("page", PAGES)
def test_options_exist(page: str) -> None:
    named = {found[1] for code in inline_code(page) if (found := re.match(r"(\w+) ?=(?!=)", code))}
    named = {name for name in named if not name.startswith("ROTA_")}
    parameters = {field.encode_name for route in ROUTES for field in msgspec.structs.fields(route.query)}
    assert named <= {*all_keywords(), *OTHERS_OPTIONS.split(), *parameters}


# --- Files ----------------------------------------------------------------------------------------

EXAMPLES = {"shop.py", "sales.py", "report.py", "json.py", "jobs.toml", "rota.toml"}
_PATH = re.compile(
    r"(?P<path>[\w.*/-]+(?:\.(?:py|sql|md|toml)|/)|(?:src|tests|examples|scripts)/[\w/]+)(?:: (?P<name>\w+))?"
)


@cache
def files(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((REPOSITORY / folder).rglob("*.*"))]


def is_there(path: str) -> bool:
    if "/" not in path:
        return path in EXAMPLES or path in {file.name for file in files("src", "tests")}
    return any(next(root.glob(path.rstrip("/")), None) for root in (REPOSITORY, REPOSITORY / "src/rota"))


@pytest.mark.parametrize("page", PAGES)
def test_files_and_the_names_in_them_exist(page: str) -> None:
    codes = [code for code in inline_code(page) if not code.startswith(("/", "rota.db"))]
    named = [found for code in codes if (found := _PATH.fullmatch(code))]
    wrong = [found[0] for found in named if not is_there(found["path"])]
    wrong += [found[0] for found in named if found["name"] and not is_defined(found["path"], found["name"])]
    assert not wrong


def is_defined(path: str, name: str) -> bool:
    (file,) = [root / path for root in (REPOSITORY, REPOSITORY / "src/rota") if (root / path).exists()]
    return name in words_of_python(file.read_text("utf-8"))


def test_wrong_files_are_found() -> None:
    assert is_there("domain/status.py")
    assert is_there("store/queries/*.sql")
    assert not is_there("domain/statuses.py")
    assert not is_there("spawners.py")
    assert not is_defined("ops/claim.py", "ROW_GATE")


# --- Settings, statuses, reasons and other words --------------------------------------------------


def words_of_python(source: str) -> set[str]:
    """Every name in a module, and every text in it that is one word."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.alias(name=name, asname=asname):
                found |= {name, asname or name}
            case ast.Constant(value=str(text)):
                found.add(text)
            case _:
                continue
    return found


@cache
def vocabulary() -> set[str]:
    """Every word of the source and of its SQL, the names of settings, and what tests and the Makefile define."""
    source = {path: path.read_text("utf-8") for path in files("src") if path.suffix in (".py", ".sql")}
    found = {path.stem for path in source} | {path.parent.name for path in source}
    for path, text in source.items():
        found |= words_of_python(text) if path.suffix == ".py" else set(re.findall(r"\w+", text))
    for text in (path.read_text("utf-8") for path in files("tests", "examples") if path.suffix == ".py"):
        found |= set(re.findall(r"^ *(?:async )?(?:(?:def|class) )?(\w+)(?=\(| = |:)", text, re.MULTILINE))
        found |= set(re.findall(r'"(ROTA_\w+)"', text))
    found |= set(re.findall(r"^(\w+)", (REPOSITORY / "Makefile").read_text("utf-8"), re.MULTILINE))
    found |= set(re.findall(r'^  "(\w+):', (REPOSITORY / "pyproject.toml").read_text("utf-8"), re.MULTILINE))
    found |= {f"ROTA_{name.upper()}" for name in Settings.__struct_fields__}
    # Members of JSON are in camelCase: `busyShare` is `busy_share`.
    return found | {re.sub(r"_(\w)", lambda match: match[1].upper(), word) for word in found}


OUTSIDE = """
    PYTHONDONTWRITEBYTECODE multiprocessing Prefer sept MON
    gdb strace ptrace ulimit nohup CAP_SYS_PTRACE TimeoutStopSec terminationGracePeriodSeconds
    LISTEN PREPARE SERIALIZABLE USAGE
    Authorization Host
    AsyncSession scoped_session sync_to_async TestClient
"""
"""Words of Python, cron, Linux, PostgreSQL, HTTP and libraries."""


@pytest.mark.parametrize("page", PAGES)
def test_words_exist(page: str) -> None:
    words = {code for code in inline_code(page) if re.fullmatch(r"[A-Za-z]\w{2,}", code)}
    words = {re.sub(r"_p\d{8}$", "", word) for word in words}  # The partition of a day.
    unknown = words - vocabulary() - set(keyword.kwlist) - set(OUTSIDE.split())
    assert not unknown


@pytest.mark.parametrize("page", PAGES)
def test_variables_are_settings(page: str) -> None:
    """Also in blocks of code."""
    assert set(re.findall(r"\bROTA_[A-Z_]*[A-Z]\b", pages()[page])) <= vocabulary()


EXPECTED: dict[str, set[str]] = {
    r"(?:ends?|ended) as `(\w+)`": set(Status),
    r"\b(?:status|statuses) `(\w+)`": set(Status),
    r"\breasons? `(\w+)`": set(Reason),
    r"\b(?:stay|stays|becomes?) `(\w+)`": {*Status, *TickOutcome},
    r"\bthe kind `(\w+)`": set(blocker.Kind),
}


@pytest.mark.parametrize("pattern", list(EXPECTED))
def test_statuses_reasons_and_blockers_exist(pattern: str) -> None:
    named = {word for page in PAGES for word in re.findall(pattern, prose(page))}
    assert named, "the docs have no such sentence any more"
    assert named <= EXPECTED[pattern]


def test_the_outcomes_of_ticks_are_described() -> None:
    described = {name for row in table("docs/schedules.md", "The ledger") for name in re.findall(r"\w+", row[0])}
    assert described == set(TickOutcome)
