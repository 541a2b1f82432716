"""Reads the source of a workflow's function, and finds what Python does not let a symbolic value refuse.

`x is None`, `isinstance(x, …)` and `match x` look at the object itself, `try` may hide a refusal, and a `return` in a
block looks the same as one at the end. If that block is an `if` on a value, the `if` is reported before the `return`.
The scan follows names that are bound to symbolic values in the function itself, not into functions that it calls.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

from rota.domain.errors import WorkflowError
from rota.sdk.workflow.place import Place
from rota.sdk.workflow.value import TRUTH

_STEPS = ("step", "map", "starmap")
_MAKERS = ("first", "default", "outcomes", "text")
_WAITS = ("sleep", "approve", "wait_for_event")
_LOOKS = ("isinstance", "issubclass", "type", "callable", "hasattr", "id", "vars")
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_IDENTITY = "the value is not known yet, so this is decided while the workflow is built: use `is_none(x)` or `default`"
_KIND = "the value is not known yet and has another type while the workflow is built: use `is_none(x)` or `default`"
_TRY = "a step fails when the workflow runs, not here: use `with when(failed(x)):`"
_RETURN = "return once, at the end: a branch has no result of its own, use `first(…)` or `default(…)`"


def result_place(function: Callable[..., Any]) -> Place | None:
    """The place of the last `return`; None if the source is not there."""
    found = _parsed(function)
    if found is None:
        return None
    tree, source, file, start = found
    returns = [node for node in tree.body if isinstance(node, ast.Return)]
    return Place(file, start + returns[-1].lineno - 1, _shown(returns[-1], source)) if returns else None


def scan(function: Callable[..., Any], workflow: str) -> list[WorkflowError]:
    """Everything that is found; nothing if the source is not there, as in an interactive session."""
    parsed = _parsed(function)
    if parsed is None:
        return []
    tree, source, file, start = parsed
    found = sorted(_findings(tree), key=lambda one: (one[0].lineno, one[0].col_offset))
    return [
        Place(file, start + node.lineno - 1, _shown(node, source)).error(workflow, message) for node, message in found
    ]


def _parsed(function: Callable[..., Any]) -> tuple[_Function, str, str, int] | None:
    """The tree, the source, the file, and the line at which the source begins."""
    try:
        lines, start = inspect.getsourcelines(function)
        source = textwrap.dedent("".join(lines))
        (tree,) = ast.parse(source).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    if not isinstance(tree, _Function):
        return None  # A lambda: its source is the whole statement.
    return tree, source, inspect.getsourcefile(function) or "?", start


def _findings(tree: _Function) -> Iterator[tuple[ast.stmt | ast.expr, str]]:
    symbolic = _Symbolic(tree)
    for node, is_nested in _own(tree.body, is_nested=False):
        match node:
            case ast.Compare(left=left, ops=operators, comparators=others):
                if any(map(_is_identity, operators)) and any(map(symbolic, [left, *others])):
                    yield node, _IDENTITY
            case ast.Call(func=ast.Name(id=name), args=[looked_at, *_]) if name in _LOOKS and symbolic(looked_at):
                yield node, _KIND
            case ast.Match(subject=subject) if symbolic(subject):
                yield subject, _KIND
            case ast.Try(body=body) | ast.TryStar(body=body) if any(
                _is_step(one) for part in body for one in ast.walk(part)
            ):
                yield node, _TRY
            case ast.Return() if is_nested:
                yield node, _RETURN
            case ast.If(test=test) if symbolic.is_judged(test) and _returns(node):
                yield node, TRUTH


def _own(body: list[ast.stmt], *, is_nested: bool) -> Iterator[tuple[ast.AST, bool]]:
    """Every node of a function, without those of functions in it, and whether it is in a block."""
    for statement in body:
        yield from _below(statement, is_nested=is_nested)


def _below(node: ast.AST, *, is_nested: bool) -> Iterator[tuple[ast.AST, bool]]:
    yield node, is_nested
    if isinstance(node, _NESTED):
        return
    for child in ast.iter_child_nodes(node):
        yield from _below(child, is_nested=is_nested or isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case))


class _Symbolic:
    """Whether an expression is a symbolic value, as far as the source shows."""

    def __init__(self, tree: _Function) -> None:
        arguments = tree.args
        self._names = {one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        before = -1
        while len(self._names) > before:  # A name may be used above the line that binds it, in a loop.
            before = len(self._names)
            for node, _ in _own(tree.body, is_nested=False):
                self._bind(node)

    def __call__(self, node: ast.expr | None) -> bool:
        match node:
            case ast.Name(id=name):
                return name in self._names
            case ast.Attribute(value=ast.Name(id="this_run")):
                return True
            case ast.Attribute(value=inner) | ast.Subscript(value=inner) | ast.NamedExpr(value=inner):
                return self(inner)
            case ast.IfExp(body=one, orelse=other):
                return self(one) or self(other)
            case ast.Call(func=ast.Name(id=name)) if name in _MAKERS:
                return True
            case _:
                return _is_step(node)

    def is_judged(self, test: ast.expr) -> bool:
        """Whether a test asks if a symbolic value, or a comparison of one, is true."""
        match test:
            case ast.BoolOp(values=values):
                return any(map(self.is_judged, values))
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                return self.is_judged(inner)
            case ast.Compare(left=left, ops=operators, comparators=others):
                return not any(map(_is_identity, operators)) and any(map(self, [left, *others]))
            case _:
                return self(test)

    def _bind(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=targets, value=value) if self(value):
                self._names |= {name for target in targets for name in _names(target)}
            case ast.AnnAssign(target=target, value=value) if self(value):
                self._names |= set(_names(target))
            case ast.NamedExpr(target=target, value=value) if self(value):
                self._names.add(target.id)


def _returns(block: ast.stmt) -> bool:
    return any(isinstance(node, ast.Return) for node, _ in _below(block, is_nested=True))


def _is_identity(operator: ast.cmpop) -> bool:
    return isinstance(operator, ast.Is | ast.IsNot)


def _names(target: ast.expr) -> list[str]:
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    return [part.id for part in parts if isinstance(part, ast.Name)]


def _is_step(node: ast.AST | None) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in _STEPS
        case ast.Call(func=ast.Name(id=name)):
            return name in _WAITS
        case ast.Call(func=ast.Call(func=ast.Attribute(value=inner, attr="after" | "options"))):
            return _is_step(ast.Call(func=inner, args=[], keywords=[]))  # approve.after(…)(…)
        case _:
            return False


def _shown(node: ast.stmt | ast.expr, source: str) -> str:
    """The expression, or the first line of a statement."""
    return (ast.get_source_segment(source, node) or "").split("\n")[0].partition("  #")[0].strip()
