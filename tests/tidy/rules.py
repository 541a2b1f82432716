"""The rules of style that a program can check: functions of a path and a source that return findings.

Paths are relative to the repository, so that a rule can tell the package a file is in (`src/rota/<package>/…`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import PurePosixPath
from typing import NamedTuple

MAX_FILE_LINES = 450
MAX_FUNCTION_LINES = 60

_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


class Finding(NamedTuple):
    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@cache
def parsed(source: str) -> ast.Module:
    """Most rules look at every file, and parsing takes longer than looking."""
    return ast.parse(source)


# --- SQL ------------------------------------------------------------------------------------------

# Keywords in capitals are SQL wherever they stand; in small letters only at the start, where prose is rare.
_SQL = re.compile(
    r"""
      \b(?: SELECT\b.*\bFROM | INSERT\s+(?:OR\s+\w+\s+)?INTO | UPDATE\b.*\bSET | DELETE\s+FROM
          | (?:CREATE|DROP|ALTER)\s+(?:UNIQUE\s+|TEMP\s+)?(?:TABLE|INDEX|VIEW|TRIGGER|SCHEMA|FUNCTION)
          | PRAGMA\s+\w | ROLLBACK\s+TO | BEGIN\s+IMMEDIATE | TRUNCATE\s+\w )
    | ^\s*(?: SAVEPOINT\s | RELEASE\s+\w | SELECT\s | VACUUM\b | WITH\s+\w+\s+AS\s
          | select\s.*\sfrom\s | insert\s+into\s | update\s+\w+\s+set\s | delete\s+from\s
          | create\s+(?:table|index)\s | pragma\s+\w+ | savepoint\s+\w )
    """,
    re.VERBOSE | re.DOTALL,
)
_EXECUTE = {"execute", "executemany", "executescript", "copy"}


def sql_outside_store(path: str, source: str) -> list[Finding]:
    """Only the store speaks SQL."""
    if _package(path) == "store":
        return []
    return [
        Finding(path, node.lineno, f"SQL outside store/: {_shortened(text)}")
        for node, text in _strings(parsed(source))
        if _SQL.search(text)
    ]


def glued_sql(path: str, source: str) -> list[Finding]:
    """SQL is never put together from pieces: values are parameters, statements have names."""
    if _package(path) != "store":
        return []
    tree = parsed(source)
    suspects: list[ast.expr] = [node.args[0] for node in _calls_of(tree, _EXECUTE) if node.args]
    glued = {node.lineno: node for node in suspects if _is_glued(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.expr) and _is_glued(node) and _SQL.search(_literal_text(node)):
            glued.setdefault(node.lineno, node)
    return [
        Finding(path, line, f"SQL glued together: {_shortened(ast.unparse(glued[line]))}") for line in sorted(glued)
    ]


def _is_glued(node: ast.expr) -> bool:
    match node:
        case ast.JoinedStr() | ast.BinOp(op=ast.Add() | ast.Mod()):
            return True
        case ast.Call(func=ast.Attribute(attr="format")):
            return True
        case _:
            return False


def _literal_text(node: ast.expr) -> str:
    parts = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    return " ".join(parts)


_STATEMENT = re.compile(r"^-- name: (?P<name>\w+)(?: @(?P<dialect>\w+))?\s*$")
_DIALECTS = {None, "sqlite", "postgres"}


def statements(files: Mapping[str, str], sources: Mapping[str, str]) -> list[Finding]:
    """Every named statement is used, and no two have the same name in the same dialect."""
    used = {
        node.value
        for source in sources.values()
        for node in ast.walk(parsed(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    findings = []
    seen: dict[tuple[str, str | None], str] = {}
    for path, line, text in _lines(files):
        if not re.match(r"--\s*name\b", text):
            continue
        heading = _STATEMENT.match(text)
        if heading is None or heading["dialect"] not in _DIALECTS:
            findings.append(Finding(path, line, f"not a heading of a statement: {text}"))
            continue
        name, dialect = heading["name"], heading["dialect"]
        if name not in used:
            findings.append(Finding(path, line, f"statement {name!r} is not used"))
        if first := seen.get((name, dialect)):
            findings.append(Finding(path, line, f"statement {name!r} is already defined in {first}"))
        seen.setdefault((name, dialect), f"{path}:{line}")
    return findings


# --- Clock, randomness, purity --------------------------------------------------------------------

_IMPURE_MODULES = {"random", "secrets"}
_IMPURE_NAMES = {
    *(f"time.{name}{unit}" for name in ("time", "monotonic", "perf_counter", "process_time") for unit in ("", "_ns")),
    *(f"time.{name}" for name in ("sleep", "gmtime", "localtime", "ctime", "*")),
    *(f"datetime.datetime.{name}" for name in ("now", "utcnow", "today")),
    *(f"uuid.uuid{version}" for version in (1, 4, 6, 7, 8)),
    "datetime.date.today",
    "os.urandom",
    "os.getrandom",
}


def clock_and_randomness(path: str, source: str) -> list[Finding]:
    """Time and chance come from a `Clock`, so that tests and the simulator can decide them."""
    if path == "src/rota/clock.py":
        return []
    tree = parsed(source)
    findings = {
        Finding(path, line, f"{name} outside clock.py")
        for line, name in _imported(tree)
        if name.split(".")[0] in _IMPURE_MODULES or name in _IMPURE_NAMES
    }
    findings |= {
        Finding(path, line, f"{name} outside clock.py") for line, name in _references(tree) if name in _IMPURE_NAMES
    }
    return sorted(findings)


def asyncio_in_synchronous_packages(path: str, source: str) -> list[Finding]:
    """Policy and operations have one colour: plain functions."""
    package = _package(path)
    if package not in {"domain", "store", "ops"}:
        return []
    return [
        Finding(path, line, f"{name} in {package}/")
        for line, name in _imported(parsed(source))
        if name.split(".")[0] in {"asyncio", "anyio", "uvloop"}
    ]


# Modules that only compute. `zoneinfo` reads the time-zone database, which is data like any other constant.
_PURE = """
    __future__ abc ast base64 binascii bisect calendar collections copy dataclasses datetime decimal difflib enum
    fnmatch fractions functools graphlib hashlib heapq hmac ipaddress itertools json keyword math numbers operator re
    shlex statistics string struct textwrap types typing unicodedata urllib.parse uuid zlib zoneinfo
    msgspec rota.domain
"""
_PURE_MODULES = frozenset(_PURE.split())


def impure_domain(path: str, source: str) -> list[Finding]:
    """The domain imports itself, msgspec and what only computes."""
    if _package(path) != "domain":
        return []
    return [
        Finding(path, line, f"{name} in domain/, which is pure")
        for line, name in _imported(parsed(source), path)
        if not any(name == pure or name.startswith(f"{pure}.") for pure in _PURE_MODULES)
    ]


# --- Types ----------------------------------------------------------------------------------------


def late_types(sources: Mapping[str, str]) -> list[Finding]:
    """A function decodes only types that some module has prepared: `domain/decoding.py` says why."""
    trees = {path: parsed(source) for path, source in sources.items()}
    prepared = {
        name
        for tree in trees.values()
        for statement in tree.body
        if not isinstance(statement, (*_FUNCTION, ast.ClassDef))
        for name in _decoded_types(statement)
    }
    return [
        Finding(path, function.lineno, f"decodes {name}, which no module prepares when it is imported")
        for path, tree in trees.items()
        for function in ast.walk(tree)
        if isinstance(function, _FUNCTION)
        for name in sorted(_decoded_types(function) - prepared)
    ]


def _decoded_types(tree: ast.AST) -> set[str]:
    """The classes that msgspec is asked for. A name in small letters is a variable or a type of Python's own, one in
    capital letters is a constant."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    kinds: list[ast.expr] = []
    for call in calls:
        called = ast.unparse(call.func)
        if called.endswith(".decode"):
            kinds += [one.value for one in call.keywords if one.arg == "type"]
        elif called == "prepare" or called.endswith("Decoder"):
            kinds += call.args
        elif called == "msgspec.convert":
            kinds += call.args[1:2]
    names = {node.id for kind in kinds for node in ast.walk(kind) if isinstance(node, ast.Name)}
    return {name for name in names if name.lstrip("_")[:1].isupper() and not name.isupper()} - {"Any"}


# --- Size and shape -------------------------------------------------------------------------------


def too_long(path: str, source: str) -> list[Finding]:
    """A file is one noun, a function is one step."""
    findings = []
    if (count := len(source.splitlines())) > MAX_FILE_LINES:
        findings.append(Finding(path, 1, f"file of {count} lines, more than {MAX_FILE_LINES}"))
    for node in ast.walk(parsed(source)):
        if isinstance(node, _FUNCTION) and (count := _last_line(node) - node.lineno + 1) > MAX_FUNCTION_LINES:
            message = f"function {node.name} of {count} lines, more than {MAX_FUNCTION_LINES}"
            findings.append(Finding(path, node.lineno, message))
    return findings


_LAZY = re.compile(r"#\s*lazy:\s*\S")


def import_in_function(path: str, source: str) -> list[Finding]:
    """Imports stand at the top, unless a comment on the line or above says why not."""
    if _package(path) == "cli":
        return []
    lines = ["", *source.splitlines()]
    found = {
        node.lineno: node
        for function in ast.walk(parsed(source))
        if isinstance(function, _FUNCTION)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    return [
        Finding(path, line, f"import in a function without `# lazy: <reason>`: {ast.unparse(node)}")
        for line, node in sorted(found.items())
        if not any(_LAZY.search(text) for text in lines[line - 1 : _last_line(node) + 1])
    ]


# --- Text -----------------------------------------------------------------------------------------

# Written so that this file does not find itself.
_LEFTOVER = re.compile(r"\b(?:TO[D]O|FIX[M]E|XX[X])\b")
_MACHINE_PATH = re.compile(r"(?<![\w.)}\]>-])(?:/(?:work|root|home|Users)/|[A-Z]:\\Users\\)[\w.]*")
# In names too, where an underscore stands between words. `nobody` in quotes is the account.
_NO_SUBJECT = re.compile(
    r"""(?<![a-z])(?:(?:some|any)bod(?:y|ies)(?:s)?|(?<!["'`])nobodys?(?!["'`])|whoever|(?:goes|going)[ _]on
      |(?:is|are|was|were)[ _]told|comes?[ _]to[ _]nothing)(?![a-z])""",
    re.IGNORECASE | re.VERBOSE,
)


def leftovers(path: str, source: str) -> list[Finding]:
    """What is left to do belongs in an issue."""
    return _matches(path, source, _LEFTOVER, "left to do")


def machine_paths(path: str, source: str) -> list[Finding]:
    """No file names a folder of somebody's machine."""
    return _matches(path, source, _MACHINE_PATH, "path of a machine")


def words_without_subject(path: str, source: str) -> list[Finding]:
    """A sentence names the row, the process, the lock, the worker or the caller that it is about."""
    return _matches(path, source, _NO_SUBJECT, "name the subject")


_SLEEPS = {"time.sleep", "asyncio.sleep"}
_SLEEP_REASON = re.compile(r"#\s*sleep:\s*\S")


def sleeping_tests(path: str, source: str) -> list[Finding]:
    """Tests wait for signals; a sleep is either too short or too long."""
    tree = parsed(source)
    lines = ["", *source.splitlines()]
    names = _names(tree)
    return [
        Finding(path, node.lineno, f"sleep without `# sleep: <reason>`: {_shortened(ast.unparse(node))}")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and _dotted(node.func, names) in _SLEEPS
        and _is_nonzero_constant([*node.args, *(keyword.value for keyword in node.keywords)])
        and not any(_SLEEP_REASON.search(text) for text in lines[node.lineno : _last_line(node) + 1])
    ]


def _is_nonzero_constant(arguments: list[ast.expr]) -> bool:
    if not arguments:
        return False
    nodes = list(ast.walk(arguments[0]))
    if any(isinstance(node, ast.Name | ast.Attribute | ast.Call) for node in nodes):
        return False
    return any(isinstance(node, ast.Constant) and node.value != 0 for node in nodes)


# --- Reading source -------------------------------------------------------------------------------


def _package(path: str) -> str:
    """The folder or module directly below `src/rota`."""
    parts = PurePosixPath(path).parts
    return parts[2] if parts[:2] == ("src", "rota") and len(parts) > 2 else ""


def _strings(tree: ast.Module) -> Iterator[tuple[ast.expr, str]]:
    """Every string that is a value; documentation is not. The holes of an f-string read as `?`."""
    documentation = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    formatted = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    inside = {part for node in formatted for part in node.values}
    for joined in formatted:
        yield joined, "".join(_text(part) or "?" for part in joined.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node not in documentation and node not in inside:
            yield node, _text(node)


def _text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _imported(tree: ast.Module, path: str = "") -> Iterator[tuple[int, str]]:
    """The full dotted name of everything imported; relative imports are resolved against the path."""
    package = PurePosixPath(path).parts[1:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def _names(tree: ast.Module) -> dict[str, str]:
    """What the names that imports bind stand for."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.split(".")[0]
                names[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return names


def _references(tree: ast.Module) -> Iterator[tuple[int, str]]:
    names = _names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name) and (name := _dotted(node, names)):
            yield node.lineno, name


def _dotted(node: ast.expr, names: Mapping[str, str]) -> str:
    match node:
        case ast.Name(id=name):
            return names.get(name, "")
        case ast.Attribute(value=value, attr=attribute):
            start = _dotted(value, names)
            return f"{start}.{attribute}" if start else ""
        case _:
            return ""


def _calls_of(tree: ast.Module, methods: set[str]) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in methods:
            yield node


def _lines(files: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
    for path, source in files.items():
        for line, text in enumerate(source.splitlines(), start=1):
            yield path, line, text


def _matches(path: str, source: str, pattern: re.Pattern[str], message: str) -> list[Finding]:
    return [
        Finding(path, line, f"{message}: {match[0]}")
        for _, line, text in _lines({path: source})
        for match in pattern.finditer(text)
    ]


def _last_line(node: ast.stmt | ast.expr) -> int:
    return node.end_lineno or node.lineno


def _shortened(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 60 else f"{words[:59]}…"
