"""What looks like Python but cannot be in a workflow is refused, with the file, the line, the expression and a way out.

Each case is the body of a workflow; `#!` marks the line that the error must name.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rota import WorkflowError
from tests.workflow.written import HEADER, app_of, flow, module, refused

TRUTH = "with when"
LISTS = "job.map(x)"
COMPUTING = "do it in a job"
METHODS = "have no methods"
LOOKS = "is_none(x)"

# body, expression, a part of the way out
CASES = {
    # The value refuses.
    "if": ("x = check.step(extract.step(day))\nif x:  #!\n    send.step('a')", "x", TRUTH),
    "while": ("x = extract.step(day)\nwhile x.rows > 1:  #!\n    send.step('a')", "x.rows > 1", TRUTH),
    "and": ("x = extract.step(day)\nsend.step(x.note and 'a')  #!", "x.note and 'a'", "all_of"),
    "or": ("x = extract.step(day)\nsend.step(x.note or 'a')  #!", "x.note or 'a'", "any_of"),
    "not": ("x = extract.step(day)\nanything.step(not x.rows)  #!", "not x.rows", "not_"),
    "between": ("x = extract.step(day)\nwith when(1 < x.rows < 5): send.step('a')  #!", "1 < x.rows < 5", "all_of"),
    "assert": ("x = extract.step(day)\nassert x.rows  #!\nsend.step('a')", "x.rows", TRUTH),
    "in a list": ("x = extract.step(day)\nwith when(x.rows in [1, 2]): send.step('a')  #!", "x.rows in [1, 2]", TRUTH),
    "for": ("x = extract.step(day)\nfor file in x.files:  #!\n    transform.step(file)", "x.files", LISTS),
    "comprehension": ("x = extract.step(day)\n[transform.step(f) for f in x.files]  #!", "x.files", LISTS),
    "unpack": ("x = extract.step(day)\na, b = x.files  #!\nsend.step(a)", "a, b", LISTS),
    "len": ("x = extract.step(day)\nanything.step(len(x.files))  #!", "len(x.files)", LISTS),
    "sum": ("x = transform.map(['a'])\nanything.step(sum(x))  #!", "sum(x)", LISTS),
    "contains": ("x = extract.step(day)\nwith when('a' in x.files): send.step('a')  #!", "'a' in x.files", "one_of"),
    "f-string": ("send.step(f'for {day}')  #!", "f'for {day}'", "text("),
    "str": ("send.step(str(day))  #!", "str(day)", "text("),
    "concatenate": ("send.step('a' + day)  #!", "'a' + day", "text("),
    "plus": ("x = extract.step(day)\nanything.step(x.rows + 1)  #!", "x.rows + 1", COMPUTING),
    "percent": ("send.step('%s' % day)  #!", "'%s' % day", "text("),
    "int": ("anything.step(int(day))  #!", "int(day)", COMPUTING),
    "range": ("x = extract.step(day)\nanything.step(list(range(x.rows)))  #!", "range(x.rows)", COMPUTING),
    "open": ("anything.step(open(day))  #!", "open(day)", COMPUTING),
    "key of a dict": ("anything.step({day: 1})  #!", "{day: 1}", COMPUTING),
    "dumps": ("send.step(json.dumps(day))  #!", "json.dumps(day)", COMPUTING),
    "join": ("send.step(', '.join([day]))  #!", "', '.join([day])", COMPUTING),
    "copy": ("anything.step(copy.deepcopy(day))  #!", "copy.deepcopy(day)", COMPUTING),
    "repr": ("send.step(f'{day!r}')  #!", "send.step(f'{day!r}')", "text("),
    "method": ("x = load.step([1])\nanything.step(x.get('a'))  #!", "x.get('a')", METHODS),
    "method of a list": ("x = extract.step(day)\nx.files.append('a')  #!", "x.files.append", METHODS),
    "method of a text": ("send.step(day.upper())  #!", "day.upper", METHODS),
    "set a member": ("x = extract.step(day)\nx.rows = 1  #!", "x.rows", METHODS),
    "set an item": ("x = extract.step(day)\nx.files[0] = 'a'  #!", "x.files[0]", METHODS),
    "index": ("x = extract.step(day)\nsend.step(x.files[x.rows])  #!", "x.files[x.rows]", COMPUTING),
    "slice": ("x = extract.step(day)\ntransform.map(x.files[1:])  #!", "x.files[1:]", COMPUTING),
    "wrong member": ("x = extract.step(day)\ntransform.map(x.fils)  #!", "x.fils", "did you mean 'files'?"),
    "wrong key": ("x = extract.step(day)\ntransform.map(x['fils'])  #!", "x['fils']", "did you mean 'files'?"),
    "wrong item": ("x = pair.step(day)\nanything.step(x[2])  #!", "x[2]", "it has 2 items"),
    "condition as a value": (
        "x = extract.step(day)\nanything.step(x.rows > 1)  #!",
        "anything.step(x.rows > 1)",
        "in a job",
    ),
    "conditions with &": (
        "x = extract.step(day)\nwith when((x.rows > 1) & (x.rows < 5)): send.step('a')  #!",
        "(x.rows > 1) & (x.rows < 5)",
        "all_of",
    ),
    "set": ("anything.step({'a', 'b'})  #!", "anything.step({'a', 'b'})", "sorted("),
    "caught": ("try:\n    n = int(day)  #!\nexcept ValueError:\n    n = 0\nanything.step(n)", "int(day)", COMPUTING),
    # The source shows it.
    "is None": ("x = extract.step(day)\nif x.note is None:  #!\n    send.step('a')", "x.note is None", LOOKS),
    "is not None": (
        "x = extract.step(day)\ny = x if x is not None else 1  #!\nanything.step(y)",
        "x is not None",
        LOOKS,
    ),
    "isinstance": (
        "x = extract.step(day)\nif isinstance(x, Raw):  #!\n    send.step('a')",
        "isinstance(x, Raw)",
        LOOKS,
    ),
    "type": ("anything.step(type(day) == str)  #!", "type(day)", LOOKS),
    "match": ("x = extract.step(day)\nmatch x.note:  #!\n    case None: send.step('a')", "x.note", LOOKS),
    "try": ("try:  #!\n    x = extract.step(day)\nexcept ValueError:\n    send.step('a')", "try:", "when(failed(x))"),
    "return in when": (
        "x = extract.step(day)\nwith when(x.rows > 1):\n    return send.step('a')  #!",
        "return send.step('a')",
        "return once, at the end",
    ),
    "return in an if on a value": (
        "x = extract.step(day)\nif not x.rows > 1:  #!\n    return send.step('a')\nreturn None",
        "not x.rows > 1",
        TRUTH,
    ),
    "return in if": ("if os.name:\n    return send.step('a')  #!\nreturn None", "return send.step('a')", "return once"),
    # The build knows.
    "call": ("x = extract.step(day)\nload(x.files)  #!", "load(x.files)", "load.step(…)"),
    "enqueue": ("x = extract.step(day)\nload.enqueue([1])  #!", "load.enqueue([1])", "load.step(…)"),
    "enqueue_many": ("load.enqueue_many([])  #!", "load.enqueue_many([])", "load.step(…)"),
    "now": ("send.step(datetime.now(UTC).isoformat())  #!", "send.step(datetime.now(UTC).isoformat())", "`this_run`"),
    "uuid": ("send.step('a', text=uuid.uuid4().hex)  #!", "send.step('a', text=uuid.uuid4().hex)", "argument 'text'"),
    "random": (
        "n = app.__dict__.setdefault('n', [])\nn.append(1)\nfor _ in n:\n    send.step('b')  #!",
        "send.step('b')",
        "only in one of two runs",
    ),
    "after without step": ("x = extract.step(day)\nsend.after(x)  #!", "send.after(x)", "`.step(…)` is missing"),
    "when without with": ("x = extract.step(day)\nwhen(x.rows > 1)  #!", "when(x.rows > 1)", "`with` is missing"),
    "otherwise alone": ("with otherwise(): send.step('a')  #!", "otherwise()", "`with when(…):`"),
    "otherwise too late": (
        "x = extract.step(day)\nwith when(x.rows > 1): send.step('a')\n"
        "send.step('b')\nwith otherwise(): send.step('c')  #!",
        "otherwise()",
        "right after",
    ),
    "constant condition": ("with when(1 > 2): send.step('a')  #!", "when(1 > 2)", "plain `if`"),
    "number as condition": (
        "x = extract.step(day)\nwith when(x.rows): send.step('a')  #!",
        "when(x.rows)",
        "compare it",
    ),
    # The graph shows it.
    "case 11, both branches by value": (
        "x = extract.step(day)\nwith when(x.rows > 1): a = send.step('a')\nwith otherwise(): b = send.step('b')\n"
        "anything.step([a, b])  #!",
        "anything.step([a, b])",
        "first(a, b)",
    ),
    "case 11, both branches by order": (
        "x = extract.step(day)\nwith when(x.rows > 1): a = send.step('a')\nwith otherwise(): b = send.step('b')\n"
        "send.after(a, b).step('c')  #!",
        "send.after(a, b).step('c')",
        'rule="none_failed"',
    ),
    "the value of what failed": (
        "x = extract.step(day)\nwith when(failed(x)): check.step(x)  #!",
        "check.step(x)",
        "exclude each other",
    ),
    "result of a branch": (
        "x = extract.step(day)\nwith when(x.rows > 1): a = send.step('a')\nreturn a  #!",
        "return a",
        "default(…) or first(…)",
    ),
    "result that may fail": ("return send.options(may_fail=True).step('a')  #!", "", "default(…)"),
    "cycle": (
        "a = send.step('a')\nb = send.step('b')  #!\nchain(a, b)\nchain(b, a)",
        "send.step('b')",
        "send → send_2 → send",
    ),
    "missing argument": ("send.step()  #!", "send.step()", "missing a required argument: 'to'"),
    "unknown argument": ("send.step('a', subject='b')  #!", "send.step('a', subject='b')", "subject"),
    "wrong type": (
        "x = extract.step(day)\nsend.step(x.rows)  #!",
        "send.step(x.rows)",
        "takes string, but this is integer",
    ),
    "wrong literal": ("send.step(5)  #!", "send.step(5)", "argument 'to' takes string, but this is 5"),
    "wrong items": ("transform.map([1, 2])  #!", "transform.map([1, 2])", "takes string, but each item is 1 or 2"),
    "map over no list": (
        "x = extract.step(day)\ntransform.map(x.rows)  #!",
        "transform.map(x.rows)",
        "this is integer",
    ),
    "map over a text": ("transform.map('abc')  #!", "transform.map('abc')", "needs a list"),
    "compared types": (
        "x = extract.step(day)\nwith when(x.rows > 'a'): send.step('a')  #!",
        "send.step('a')",
        "integer is compared with 'a'",
    ),
    "duplicate name": (
        "send.options(name='a').step('a')\nsend.options(name='a').step('b')  #!",
        "send.options(name='a').step('b')",
        "another options(name=…)",
    ),
    "bad name": ("send.options(name='a.b').step('a')  #!", "send.options(name='a.b').step('a')", "letters, digits"),
    # Undo.
    "undo of another type": (
        "send.options(undo=unload).step('a')  #!",
        "send.options(undo=unload).step('a')",
        "takes object or null, but its result is string",
    ),
    "undo without None": (
        "send.options(undo=unsend, undo_failed=True).step('a')  #!",
        "send.options(undo=unsend, undo_failed=True).step('a')",
        "gets null if the step did not succeed, but its argument 'receipt' takes string",
    ),
    "undo with a second argument": (
        "send.options(undo=needy).step('a')  #!",
        "send.options(undo=needy).step('a')",
        "the parameter 'count' needs a default",
    ),
    "undo is no job": (
        "send.options(undo='unsend').step('a')  #!",
        "send.options(undo='unsend').step('a')",
        "undo= takes a job of the app",
    ),
    "undo with options": (
        "send.options(undo=unsend.options(queue='b')).step('a')  #!",
        "send.options(undo=unsend.options(queue='b')).step('a')",
        "queue= cannot be set for an undo",
    ),
    "undo_failed alone": (
        "send.options(undo_failed=True).step('a')  #!",
        "send.options(undo_failed=True).step('a')",
        "needs undo=",
    ),
    # Options.
    "key": ("send.options(key='a').step('a')  #!", "send.options(key='a').step('a')", "when the workflow is started"),
    "unique": ("send.options(unique=True).step('a')  #!", "send.options(unique=True).step('a')", "when the workflow"),
    "at": (
        "send.options(at=datetime(2030, 1, 1, tzinfo=UTC)).step('a')  #!",
        "send.options(at=datetime(2030, 1, 1, tzinfo=UTC)).step('a')",
        "use delay=",
    ),
    "at_once": ("send.options(at_once=1).step('a')  #!", "send.options(at_once=1).step('a')", "send.options(…).map(…)"),
    "tolerate": ("send.options(tolerate=1).step('a')  #!", "send.options(tolerate=1).step('a')", "items of a map"),
    "bad share": (
        "transform.options(tolerate='1').map(['a'])  #!",
        "transform.options(tolerate='1').map(['a'])",
        "a whole number or a percentage such as '5%'",
    ),
    "two rules": (
        "x = send.step('a')\nsend.after(x).after(x, rule='all_done').step('b')  #!",
        "send.after(x).after(x, rule='all_done')",
        "one rule",
    ),
    "unknown rule": (
        "x = send.step('a')\nsend.after(x, rule='some').step('b')  #!",
        "send.after(x, rule='some')",
        "none_failed",
    ),
    "after a constant": ("send.after('a').step('b')  #!", "send.after('a')", "takes steps"),
}


@pytest.mark.parametrize("case", CASES)
def test_pitfalls(case: str, tmp_path: Path) -> None:
    body, expression, way_out = CASES[case]
    error = refused(tmp_path, body)
    (line,) = [number for number, text in enumerate((HEADER + flow(body)).splitlines(), start=1) if text.endswith("#!")]
    assert way_out in str(error)
    assert error.line == line, str(error)
    assert error.file is not None
    assert Path(error.file).parent == tmp_path
    assert expression in error.expression
    assert f":{line}: `{error.expression}`: " in str(error)


def test_async_functions_are_refused(tmp_path: Path) -> None:
    source = "\n@app.workflow\nasync def w(day: str) -> None:\n    await send.step(day)\n"
    error = only_problem(tmp_path, source)
    assert "write `def`, not `async def`" in str(error)
    assert error.expression == "def w"


def test_generators_are_refused(tmp_path: Path) -> None:
    assert "no `yield`" in str(refused(tmp_path, "yield send.step(day)"))


def test_a_context_and_open_parameters_are_refused(tmp_path: Path) -> None:
    assert "use `this_run`" in str(refused(tmp_path, "send.step('a')", "ctx: Context"))
    assert "pass a list" in str(refused(tmp_path, "send.step('a')", "*days: str"))


def test_an_error_in_a_function_that_is_called_names_both_lines(tmp_path: Path) -> None:
    source = "\ndef slug(text):\n    return text.strip() + '-'\n" + flow("x = anything.step(1)\nsend.step(slug(x))")
    error = only_problem(tmp_path, source)
    assert error.expression == "slug(x)"
    assert "in slug(), " in str(error)
    assert "`text.strip()`: " in str(error)
    lines = (HEADER + source).splitlines()
    assert lines[(error.line or 0) - 1] == "    send.step(slug(x))"
    assert f".py:{lines.index('    return text.strip() + ' + repr('-')) + 1}: `text.strip()`" in str(error)


def test_an_error_of_the_function_itself_is_named_with_its_line(tmp_path: Path) -> None:
    error = refused(tmp_path, "x = extract.step(day)\nsend.step({}['missing'])")
    assert "KeyError: 'missing'" in str(error)
    assert error.expression == "{}['missing']"
    assert isinstance(error.__cause__, KeyError)


def test_a_value_of_another_build_is_refused(tmp_path: Path) -> None:
    source = "\nkept = []\n" + flow("kept.append(extract.step(day))\nsend.step(kept[0].note)")
    error = only_problem(tmp_path, source)
    assert "belongs to another build" in str(error)


def test_steps_outside_of_a_workflow_are_refused(tmp_path: Path) -> None:
    found = module(tmp_path, "")
    uses: list[tuple[Callable[[], object], str]] = [
        (lambda: found.send.step("a"), "send.enqueue(…)"),
        (lambda: found.transform.map(["a"]), "transform.enqueue(…)"),
        (lambda: found.send.after("a"), "under @app.workflow"),
        (lambda: found.when(True), "under @app.workflow"),
        (lambda: found.this_run.id, "under @app.workflow"),
        (lambda: found.first(1), "under @app.workflow"),
    ]
    for use, way_out in uses:
        with pytest.raises(WorkflowError, match="is for the function of a workflow") as caught:
            use()
        assert way_out in str(caught.value)
        assert caught.value.file == __file__


@pytest.mark.parametrize("option", ["name", "at_once", "tolerate", "may_fail", "undo", "undo_failed"])
def test_enqueue_refuses_the_options_of_steps(option: str, tmp_path: Path) -> None:
    send = module(tmp_path, "").send.options(**{option: 1})
    enqueues: list[Callable[[], object]] = [lambda: send.enqueue("a"), lambda: send.enqueue_many(["a"])]
    for enqueue in enqueues:
        with pytest.raises(ValueError, match=rf"{option}= is for a step of a workflow, not for enqueue: send\.options"):
            enqueue()


def test_jobs_of_another_app_are_refused(tmp_path: Path) -> None:
    source = "\nother = App('other')\n@other.job\ndef far() -> int: ...\n" + flow("far.step()")
    assert "belongs to app 'other'" in str(only_problem(tmp_path, source))


def test_all_that_the_source_shows_is_reported_at_once(tmp_path: Path) -> None:
    app = app_of(tmp_path, flow("x = extract.step(day)\nx is None\nisinstance(x, Raw)\nreturn x"))
    assert len(app.workflows["w"].problems()) == 2


def test_an_if_that_returns_is_reported_before_its_return(tmp_path: Path) -> None:
    body = "x = extract.step(day)\nif x.rows > 1 or day:\n    return send.step('a')\nreturn x"
    found = app_of(tmp_path, flow(body)).workflows["w"].problems()
    assert [one.expression for one in found] == ["if x.rows > 1 or day:", "return send.step('a')"]
    body = "x = extract.step(day)\nif x is None:\n    return send.step('a')\nreturn x"
    found = app_of(tmp_path, flow(body)).workflows["w"].problems()
    assert [one.expression for one in found] == ["x is None", "return send.step('a')"]


def test_all_that_one_build_finds_is_reported_at_once(tmp_path: Path) -> None:
    """One problem for each line, up to the first one after which the function cannot continue."""
    body = """
        x = extract.step(day)
        send.step(x.fils)
        send.step(day + "!", text=day.upper())
        x.rows = x.files[x.rows]
        send.step()
        send.step("a", text={"b"})
        transform.map("abc")
        transform.starmap([5])
        send.options(at_once=1, name="b").step("a")
        send.options(name="b").step("a")
        send.options(name=5).step("a")
        send.after(x)
        with when((x.rows > 1) & (x.rows < 5)):
            send.step("b")
        if x.rows:
            send.step(x.fils)
        when(x.rows > 5)
    """
    found = app_of(tmp_path, flow(body)).workflows["w"].problems()
    expected = ["x.fils", 'day + "!"', "x.files[x.rows]", "send.step()", 'send.step("a", text={"b"})']
    expected += ['transform.map("abc")', "transform.starmap([5])", 'send.options(at_once=1, name="b").step("a")']
    expected += ['send.options(name="b").step("a")', 'send.options(name=5).step("a")']
    expected += ["(x.rows > 1) & (x.rows < 5)", "if x.rows:"]
    assert [one.expression for one in found] == expected


def test_everything_that_is_left_unused_is_reported(tmp_path: Path) -> None:
    body = "x = extract.step(day)\nsend.after(x)\nwhen(x.rows > 5)\nreturn {1, 2}"
    found = app_of(tmp_path, flow(body)).workflows["w"].problems()
    assert [one.expression for one in found] == ["send.after(x)", "when(x.rows > 5)", "return {1, 2}"]


def test_what_the_scan_must_not_find(tmp_path: Path) -> None:
    body = """
        x = extract.step(day)
        limit = os.environ.get("LIMIT")
        if limit is None or isinstance(limit, str):
            send.step("a")
        try:
            number = int("5")
        except ValueError:
            number = 6
        def inner(y):
            if y is None:
                return 1
            return 2
        return {"x": x, "n": inner(number)}
    """
    assert app_of(tmp_path, flow(body)).workflows["w"].problems() == []


def only_problem(folder: Path, source: str) -> WorkflowError:
    (error,) = app_of(folder, source).workflows["w"].problems()
    return error
