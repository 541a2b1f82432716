"""Arguments: checked against the signature at the caller, and given to the function as its annotations promise.

The annotations of this file are text, because of the import below; `evaluated.py` has those that are objects.
"""

from __future__ import annotations

import enum
import math
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, Optional, TypedDict

import msgspec
import pydantic
import pytest

from rota import App, ArgumentsError, Context, DefinitionError, Job
from rota.executors.signature import Signature, args_and_kwargs
from rota.sdk.job import registered
from rota.testing import Harness, harness
from tests.sdk import evaluated


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Address:
    street: str
    number: int = 1


class Order(msgspec.Struct):
    id: int
    lines: list[str]


class Point(NamedTuple):
    x: int
    y: int


class Switches(TypedDict):
    loud: bool


Small = Annotated[int, msgspec.Meta(ge=0, le=9)]


@pytest.fixture
def rota(app: App) -> Iterator[Harness]:
    with harness(app) as running:
        yield running


def passed(app: App, rota: Harness, function: Callable[..., Any], *args: Any, **kwargs: Any) -> list[Any]:
    """What the function is called with once its arguments have been through the database."""
    seen: list[Any] = []
    calling = app.job(name=f"job{len(app.jobs)}", retry=None)(function)
    registered(calling).function_executor.function = lambda *a, **k: seen.extend([a, k])
    x = calling.enqueue(*args, **kwargs)
    rota.run_until_idle()
    x.result()
    return seen


def by_name(app: App, rota: Harness, function: Callable[..., Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
    positional, named = passed(app, rota, function, *args, **kwargs)
    assert positional == ()
    return dict(named)


def test_annotations_are_what_the_function_gets(app: App, rota: Harness) -> None:
    def job(
        when: datetime,
        day: date,
        wait: timedelta,
        id: uuid.UUID,
        price: Decimal,
        colour: Colour,
        address: Address,
        order: Order,
        point: Point,
        data: bytes,
        numbers: set[int],
        pair: tuple[int, str],
        switches: Switches,
        kind: Literal["a", "b"],
        small: Small,
    ) -> None: ...

    values: dict[str, Any] = {
        "when": datetime(2026, 2, 3, 4, 5, 6, 789, tzinfo=UTC),
        "day": date(2026, 2, 3),
        "wait": timedelta(hours=1),
        "id": uuid.UUID(int=7),
        "price": Decimal("1.10"),
        "colour": Colour.BLUE,
        "address": Address("Main", 5),
        "order": Order(1, ["x"]),
        "point": Point(1, 2),
        "data": b"\x00\xff",
        "numbers": {1, 2},
        "pair": (1, "a"),
        "switches": {"loud": True},
        "kind": "b",
        "small": 5,
    }
    assert by_name(app, rota, job, **values) == values


def test_an_iterable_is_a_list_of_its_items(app: App, rota: Harness) -> None:
    def job(orders: Iterable[Order]) -> None: ...

    assert by_name(app, rota, job, (Order(1, ["x"]),)) == {"orders": [Order(1, ["x"])]}
    with pytest.raises(ArgumentsError, match="argument 'orders'"):
        app.job(name="strict")(job).enqueue("abc")  # type: ignore[arg-type]


def test_what_json_would_also_mean_is_accepted(app: App, rota: Harness) -> None:
    def job(when: datetime, colour: Colour, address: Address) -> None: ...

    named = by_name(app, rota, job, "2026-01-01T00:00:00Z", "red", {"street": "Main"})
    assert named == {"when": datetime(2026, 1, 1, tzinfo=UTC), "colour": Colour.RED, "address": Address("Main")}


def test_defaults_are_left_to_the_function(app: App, rota: Harness) -> None:
    def job(a: int, b: int = 5, *, c: Optional[str] = None, d: object = math.inf) -> None: ...  # noqa: UP045

    assert by_name(app, rota, job, 1) == {"a": 1}
    assert by_name(app, rota, job, 1, c=None) == {"a": 1, "c": None}
    assert by_name(app, rota, job, 1, 2, c="x") == {"a": 1, "b": 2, "c": "x"}


def test_any_shape_of_parameters_works(app: App, rota: Harness) -> None:
    def every(a: int, /, b: int, *rest: int, c: int, d: int = 4, **more: int) -> None: ...

    assert passed(app, rota, every, 1, 2, c=3) == [(1, 2), {"c": 3}]
    assert passed(app, rota, every, 1, 2, 3, 4, c=5, d=6, e=7) == [(1, 2, 3, 4), {"c": 5, "d": 6, "e": 7}]
    assert passed(app, rota, every, 1, b=2, c=3, a=9) == [(1, 2), {"c": 3, "a": 9}]


def test_no_parameters_and_no_annotations_work(app: App, rota: Harness) -> None:
    assert passed(app, rota, lambda: None) == [(), {}]
    assert by_name(app, rota, lambda a, b=2: None, {"x": [1, None]}) == {"a": {"x": [1, None]}}


def test_annotations_that_are_objects_work_too(app: App, rota: Harness) -> None:
    job = app.job(evaluated.evaluated)
    x = job.enqueue(datetime(2026, 1, 1, tzinfo=UTC), note="n")
    rota.run_until_idle()
    assert list(x.result()) == ["evaluated", "datetime", "n"]


def test_an_annotation_that_cannot_be_resolved_is_not_checked(app: App, rota: Harness) -> None:
    assert by_name(app, rota, evaluated.unresolvable, {"a": 1}, 2) == {"value": {"a": 1}, "other": 2}


def test_a_context_is_injected_wherever_it_stands(app: App, rota: Harness) -> None:
    seen: list[tuple[str, int, int, str]] = []

    @app.job(name="first")
    def first(ctx: Context, a: int) -> None:
        seen.append((ctx.job, ctx.fence, ctx.attempt, ctx.id))

    @app.job(name="last")
    def last(a: int, *, ctx: Context) -> None:
        seen.append((ctx.job, ctx.fence, ctx.attempt, ctx.id))

    x = first.enqueue(1)
    y = last.enqueue(2)  # type: ignore[call-arg]
    rota.run_until_idle()
    assert seen == [("first", 1, 1, x.id), ("last", 1, 1, y.id)]
    assert x.info().arguments == {"a": 1}


def test_a_context_cannot_be_passed_as_an_argument(app: App) -> None:
    @app.job
    def job(ctx: Context, a: int) -> None: ...

    with pytest.raises(ArgumentsError, match="ctx"):
        job.enqueue(a=1, ctx="forged")  # type: ignore[call-arg]


def test_a_direct_call_calls_the_function(app: App) -> None:
    @app.job
    def add(a: int, b: int = 1) -> int:
        """Adds."""
        return a + b

    @app.job
    def with_context(ctx: Context, a: int) -> tuple[int, bool]:
        return a, ctx.cancelled

    assert add(1) == 2
    assert add(1, b=5) == 6
    assert with_context(a=3) == (3, False)
    assert (vars(add)["__name__"], add.__doc__, add.name, repr(add)) == ("add", "Adds.", "add", "Job(shop.add)")


async def test_a_direct_call_of_an_async_job_is_awaited(app: App) -> None:
    @app.job
    async def add(a: int) -> int:
        return a + 1

    assert await add(1) == 2


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, "missing a required argument: 'to'"),
        ((1, 2, 3), {}, "too many positional arguments"),
        (("a",), {"colour": "red"}, "unexpected keyword argument 'colour'"),
        (("a",), {"to": "b"}, "multiple values for argument 'to'"),
        ((5,), {}, "argument 'to': expected `str`, got `int`"),
        ((None,), {}, "argument 'to': expected `str`, got `null`"),
        (("a", "many"), {}, "argument 'count': expected `int`, got `str`"),
        (("a",), {"tags": ["x", 5]}, r"argument 'tags\[1\]': expected `str`, got `int`"),
        (("a",), {"address": {"street": 5}}, "argument 'address.street': expected `str`, got `int`"),
        (("a",), {"address": {}}, "missing required field `street`|missing argument `street`"),
        (("a",), {"count": 1.5}, "argument 'count'"),
        (("a",), {"count": math.nan}, "nan at .count, which JSON cannot carry"),
        (("a\x00",), {}, "NUL character at .to"),
        (("\ud800",), {}, "lone surrogate"),
        ((object(),), {}, "cannot be stored as JSON"),
        (("x" * 2_000_000,), {}, "at most 1,048,576 are stored"),
    ],
)
def test_a_wrong_argument_is_an_error_at_the_caller_that_names_it(
    app: App, args: tuple[Any, ...], kwargs: dict[str, Any], message: str
) -> None:
    @app.job
    def send(to: str, count: int = 1, *, tags: list[str] = [], address: Address | None = None) -> None: ...  # noqa: B006

    job: Any = send
    with pytest.raises(ArgumentsError, match=message) as refusal:
        job.enqueue(*args, **kwargs)
    assert str(refusal.value).startswith("send(): ")
    with harness(app), pytest.raises(ValueError, match=r"^send\(\)"):
        job.enqueue(*args, **kwargs)


class Model(pydantic.BaseModel):
    street: str


@pydantic.dataclasses.dataclass
class Checked:
    street: str


def takes_a_model(model: Model) -> None: ...


def takes_models(*, models: dict[str, list[Model]] | None = None) -> None: ...


def takes_a_secret(secret: pydantic.SecretStr) -> None: ...


async def returns_a_model() -> Model:
    raise NotImplementedError


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (takes_a_model, "job 'takes_a_model': parameter 'model' is Model of pydantic"),
        (takes_models, "parameter 'models' is Model of pydantic"),
        (takes_a_secret, "parameter 'secret' is SecretStr of pydantic"),
        (returns_a_model, "its result is Model of pydantic"),
    ],
)
def test_a_type_of_pydantic_is_refused_when_the_job_is_declared(app: App, function: Any, message: str) -> None:
    with pytest.raises(DefinitionError, match=f"{message}, which cannot be stored: use a dataclass, or .*model_dump"):
        app.job(function)
    assert not app.jobs


def test_checks_and_dataclasses_of_pydantic_are_taken(app: App) -> None:
    @app.job
    def send(to: Checked, count: pydantic.PositiveInt) -> str:
        return f"{count} to {to.street}"

    with harness(app, inline=True):
        assert send.enqueue(Checked("Main St"), 2).result() == "2 to Main St"


@pytest.mark.parametrize("raw", [b"nonsense", b"[1,", b"", b"1 2", b'{"a":1}{}', b'"\xff"', b"1e999"])
def test_raw_json_is_read_before_it_is_stored(app: App, raw: bytes) -> None:
    def anything(value: Any) -> None: ...

    def as_it_is(value: msgspec.Raw) -> None: ...

    for function in (anything, as_it_is):
        with pytest.raises(ArgumentsError):
            app.job(function).enqueue(msgspec.Raw(raw))


def test_a_huge_wrong_value_does_not_make_a_huge_message(app: App) -> None:
    @app.job
    def send(to: int) -> None: ...

    job: Any = send
    with pytest.raises(ArgumentsError) as refusal:
        job.enqueue("x" * 500_000)
    assert len(str(refusal.value)) < 1000


@pytest.mark.parametrize("name", ["self", "type", "tag", "name", "args", "kwargs", "_private", "__dunder__", "copy"])
def test_a_parameter_may_have_any_name(app: App, rota: Harness, name: str) -> None:
    namespace: dict[str, Any] = {}
    exec(f"def job({name}: int, other: int = 2): ...", namespace)
    assert by_name(app, rota, namespace["job"], 1, other=3) == {name: 1, "other": 3}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "no spaces"}, "job's name"),
        ({"queue": ""}, "queue's name"),
        ({"retry": "often"}, "retry must be"),
        ({"retry": 0}, "attempts"),
        ({"timeout": 0}, "timeout must be longer than zero"),
        ({"timeout": "soon"}, "timeout must be"),
        ({"total_timeout": -1}, "total_timeout must be"),
        ({"priority": "urgent"}, "priority must be"),
        ({"start_within": "0s"}, "start_within must be longer than zero"),
        ({"pool": ""}, "pool's name"),
        ({"pause_after": True}, "pause_after must be a number"),
        ({"pause_after": 0}, "pause_after must be a number"),
        ({"breaker": ""}, "breaker's name"),
        ({"breaker": 3}, "breaker must be a name or a list of names, not 3"),
        ({"resources": ["gpu"]}, "resources: must be a dict, such as {'gpu': 1}"),
        ({"requires": 3}, "requires must be a name or a list of names"),
        ({"arguments": 3}, "arguments: must be a dict"),
        ({"every": "5m", "arguments": {"month": 1}}, "runs by itself, so arguments= must be what it takes: job"),
    ],
)
def test_a_job_that_is_declared_wrongly_is_refused(app: App, options: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        app.job(**{"name": "job", **options})(lambda: None)


@pytest.mark.parametrize(
    ("argv", "options", "message"),
    [
        ("echo hi", {}, r"job 'job': a command is a list of texts.*not 'echo hi'.*name it: \['sh'"),
        (b"echo", {}, "a list of texts"),
        (None, {}, "a list of texts"),
        (["echo", 1], {}, "argv"),
        (["echo"], {"time_slice": "1s"}, r"time_slice is for a function that calls ctx.checkpoint, which a command"),
        (["echo"], {"progress_timeout": "1s"}, r"progress_timeout is for .* use timeout="),
        (["echo"], {"permanent": [0]}, "the exit code 0 cannot be in success and in permanent"),
        (["echo"], {"permanent": [3], "retry_codes": [3]}, "3 cannot be in retry_codes and in permanent"),
        (["echo"], {"result": "yaml"}, "job 'job': result must be 'none', 'json' or 'text', not 'yaml'"),
        (["echo"], {"retry_codes": ["3"]}, "retry_codes must be a list of whole numbers, not a list with str"),
    ],
)
def test_a_command_that_is_declared_wrongly_is_refused(
    app: App, argv: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(DefinitionError, match=message):
        app.command("job", argv, **options)
    assert "job" not in app.jobs


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time_slice": "1s"}, "which a request cannot"),
        ({"progress_timeout": "1s"}, "which a request cannot"),
        ({"success": ["200"], "retry_codes": ["200"]}, "success and retry_codes both have 200"),
        ({"body": '{{"x": 2}}'}, "no JSON"),
        ({"success": [200, "2yy"]}, "success takes codes such as 200, 2xx and 500-599, not '2yy'"),
        ({"success": 200}, r"job 'job': success must be a list of codes, such as \[200, '2xx', '500-599'\], not 200"),
        ({"headers": {"A": 1}}, "headers must be a table of texts by name, or of .*, not a table with int"),
        ({"result": "yaml"}, "result must be 'none', 'json', 'text' or 'full', not 'yaml'"),
    ],
)
def test_a_request_that_is_declared_wrongly_is_refused(app: App, options: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        app.http("job", "https://example.com/", **options)


def test_a_definition_is_the_same_in_every_process_whatever_its_annotations_hold(app: App) -> None:
    """The text of such an object has its address in memory: each start would be another version and another deploy."""

    def declare(name: str) -> Job[..., Any, Any]:
        def function(photo: Any) -> None: ...

        function.__annotations__["photo"] = Annotated[int, object(), lambda: name]
        return app.job(name=name)(function)

    one, other = (registered(declare(name)).definition for name in "ab")
    assert one.parameters == other.parameters


def takes(job: Job[..., Any, Any]) -> dict[str, bool]:
    """Which arguments may be a list."""
    types = {name: about["type"] for name, about in registered(job).definition.parameters.items()}
    return {name: "list" in kind or kind == "Any" for name, kind in types.items()}


def test_a_list_is_taken_only_where_there_is_a_place_for_it(app: App) -> None:
    words = ["sh", "exit {code}", "{word}", "{all*}"]
    command = app.command("command", words, directory="/srv/{place}", environment={"A": "{variable}"})
    assert takes(command) == {"code": False, "word": False, "all": True, "place": False, "variable": False}
    fitting: dict[str, Any] = {"code": 1, "word": "a", "all": ["b", 2], "place": "a", "variable": "b"}
    command.enqueue(**fitting)
    for wrong in ("code", "word", "place", "variable"):
        with pytest.raises(ArgumentsError, match=f"argument '{wrong}'"):
            command.enqueue(**fitting | {wrong: ["a", "b"]})
    with pytest.raises(ArgumentsError, match="argument 'all'"):
        command.enqueue(**fitting | {"all": "b"})
    body = '{"one": {one}, "two": "{two}", "three": {three}}'
    request = app.http("request", "https://example.com/{three}", body=body)
    assert takes(request) == {"one": True, "two": False, "three": False}
    assert takes(app.http("form", "https://example.com/", body="a={a}", content_type="text/plain")) == {"a": False}
    named = app.http("named", "https://example.com/{others}")
    assert takes(named)["others"] is False


def test_two_jobs_of_one_name_are_refused(app: App) -> None:
    app.job(name="send")(lambda: None)
    with pytest.raises(DefinitionError, match="already has a job 'send'"):
        app.job(name="send")(lambda: None)


@pytest.mark.parametrize("thing", [5, "text", None])
def test_what_cannot_be_called_is_no_job(app: App, thing: Any) -> None:
    with pytest.raises(DefinitionError):
        app.job()(thing)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": "random"}, "policy must be one of fifo, priority"),
        ({"max_depth": 0}, "max_depth"),
        ({"max_depth": -1}, "max_depth"),
        ({"max_depth": "5"}, "max_depth"),
        ({"max_depth": True}, "max_depth"),
    ],
)
def test_a_queue_that_is_declared_wrongly_is_refused(app: App, options: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        app.queue("mail", **options)
    with pytest.raises(DefinitionError, match="queue's name"):
        app.queue("no spaces")


@pytest.mark.parametrize("url", ["oracle://x", "sqlite:", "sqlite://", "sqlite:///", "mysql:///x", "", "rota.db"])
def test_a_database_that_is_not_there_is_refused_in_words(url: str) -> None:
    app = App("shop", url=url or "nothing")
    app.job(name="send")(lambda: None)
    with pytest.raises(DefinitionError, match=r"sqlite:///|sqlite://"):
        app.jobs["send"].enqueue()


def test_a_url_with_too_few_slashes_is_refused_with_the_right_ones() -> None:
    with pytest.raises(DefinitionError, match=r"sqlite:////folder/file.db .*not 'sqlite:…'$"):
        App("shop", url="sqlite:/x").schedules()


def test_an_app_needs_a_good_name() -> None:
    with pytest.raises(DefinitionError, match="app's name"):
        App("my shop")
    with pytest.raises(DefinitionError, match="namespace"):
        App("shop", namespace="a b")


def in_bulk(to: str, amount: float = 0.0, *, note: str | None = None, lines: list[Any] | None = None) -> None: ...


@pytest.mark.parametrize(
    "calls",
    [
        [],
        ["ann"],
        [("ann",), ("bob", 2.5), {"to": "eve", "note": None}],
        [("a\nb\u2028c\x85",), {"to": "null", "amount": 1}],
        [("ann",), {"to": "bob", "lines": [1, {"deep": [None]}]}],
        [{"note": "first", "to": "ann"}],
        [("ann", math.nan)],
        [("ann",), ("N\0L",)],
        [("ann",), ("\ud800",)],
        [("ann",), (7,)],
        [("ann",), ("ann", "much")],
        [("ann",), ()],
        [("ann",), ("ann", 1.0, "note")],
        [("ann",), {"to": "ann", "unknown": 1}],
        [("ann",), ("é" * 90,)],
        [("ann",), ("x" * 200,)],
        [("ann", 10**400)],
    ],
    ids=repr,
)
def test_calls_of_a_bulk_enqueue_are_encoded_and_refused_like_single_calls(calls: list[Any]) -> None:
    signature = Signature(in_bulk, "in_bulk")

    def single() -> list[str]:
        return [signature.encode(*args_and_kwargs(call), 200) for call in calls]

    try:
        expected = single()
    except ArgumentsError as error:
        with pytest.raises(ArgumentsError) as found:
            signature.encode_many(calls, 200)
        assert str(found.value) == str(error)  # noqa: PT017
    else:
        assert signature.encode_many(calls, 200) == expected
