"""The declaration of a job: its options, checked and turned into its definition, its rules and its executor's data."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeVar

import msgspec

from rota.domain import masking, names, rank, retry
from rota.domain.breaker import Breaker
from rota.domain.duration import Duration, positive_seconds, seconds
from rota.domain.errors import DefinitionError
from rota.domain.job import Definition
from rota.domain.lifecycle import Rules
from rota.domain.requirement import Needs, needs
from rota.domain.retry import Policy
from rota.domain.size import Size, size
from rota.executors import kinds
from rota.executors.signature import Signature
from rota.sdk.depends_on import DependsOn
from rota.sdk.on import subscribes
from rota.sdk.schedule_options import When

S = TypeVar("S", bound=msgspec.Struct)
DEFAULT_TIMEOUT = "1h"
MOST_FAILURES = 100
Retry = Policy | int | bool | Callable[[int, BaseException], Duration | None] | None


class Options(When, total=False):
    """The options that every kind of job takes; see `App.job`."""

    queue: str
    priority: int | str
    retry: Retry
    timeout: Duration | None
    total_timeout: Duration | None
    progress_timeout: Duration | None
    time_slice: Duration | None
    start_within: Duration | None
    description: str
    pool: str | None
    requires: Sequence[str]
    resources: Mapping[str, float | str] | None
    pause_after: int | None
    breaker: str | Sequence[str]
    affinity: str | None
    affinity_wait: Duration | None
    depends_on: DependsOn
    on: str | Sequence[str]
    where: Mapping[str, Any]
    debounce: Duration
    arguments: Mapping[str, Any]


class FunctionOptions(Options, total=False):
    """The options that only functions take."""

    name: str | None
    isolation: str | None
    memory: Size | None
    grace: Duration | None


def rules(options: Mapping[str, Any], breakers: tuple[Breaker, ...]) -> Rules:
    return Rules(
        retry=retry.policy(options.get("retry", True)),
        timeout_s=_positive({"timeout": DEFAULT_TIMEOUT, **options}, "timeout"),
        total_timeout_s=_positive(options, "total_timeout"),
        progress_timeout_s=_positive(options, "progress_timeout"),
        slice_s=_positive(options, "time_slice"),
        breakers=breakers,
        pauses=options.get("pause_after") is not None,
    )


def definition(
    name: str, signature: Signature, rules: Rules, target: Mapping[str, Any], options: Mapping[str, Any], doc: str
) -> Definition:
    """The job as the database stores it."""
    _check_affinity(options.get("affinity"), signature, name)
    return Definition(
        name=name,
        queue=names.check(options.get("queue", "default"), "a queue's name"),
        priority=rank.level(options.get("priority", "normal")),
        retry=rules.retry.describe(),
        timeout_s=rules.timeout_s,
        total_timeout_s=rules.total_timeout_s,
        progress_timeout_s=rules.progress_timeout_s,
        slice_s=rules.slice_s,
        start_within_s=_positive(options, "start_within"),
        parameters=signature.parameters(),
        description=options.get("description") or doc.strip().split("\n")[0],
        needs=_needs(options, rules.breakers, target.get("kind")),
        pause_after=_pause_after(options.get("pause_after")),
        on=subscribes(options, name),
        target=masking.masked(target),
    )


def when(options: Mapping[str, Any], job: str) -> tuple[When, Mapping[str, Any]]:
    """The options that say when the job runs by itself, and its arguments then. Refuses options that do not exist."""
    if unknown := sorted(options.keys() - Options.__annotations__.keys() - When.__annotations__.keys()):
        raise DefinitionError(
            f"job {job!r}: {no_option(unknown[0], {**Options.__annotations__, **When.__annotations__})}"
        )
    found: Any = {name: value for name, value in options.items() if name in When.__annotations__}
    arguments = by_name(options.get("arguments"), "arguments", "{'month': 'last'}")
    if arguments and not found and not options.get("depends_on"):
        raise DefinitionError(f"job {job!r}: arguments= are for one with cron=, every=, after=, at= or depends_on=")
    return found, arguments


def no_option(name: str, known: Iterable[str]) -> str:
    """The message for an option that does not exist."""
    near = ["cron"] if name == "schedule" else get_close_matches(name, list(known), 1)
    return f"there is no option {name!r}" + (f": did you mean {near[0]}?" if near else "")


def name_list(given: Any, what: str) -> list[Any]:
    """One name, or several."""
    if isinstance(given, str):
        return [given]
    if isinstance(given, Iterable):
        return list(given)
    raise DefinitionError(f"{what} must be a name or a list of names, not {given!r}")


def by_name(given: Any, what: str, such_as: str) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise DefinitionError(f"{what}: must be a dict, such as {such_as}, not {str(given)[:64]!r}")
    return given


def check_breakers(named: Mapping[str, Sequence[str]], declared: Collection[str]) -> None:
    """Refuses names of breakers that are not declared, which are mostly misspelt; `named` is by job."""
    for job, breakers in named.items():
        for name in breakers:
            if name not in declared:
                near = get_close_matches(name, declared, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"say app.breaker({name!r}), or [breakers.{name}]"
                raise DefinitionError(f"job {job!r} relies on a breaker {name!r}, which is not declared: {hint}")


def isolated(isolation: str | None, memory: Size | None, grace: Duration | None) -> dict[str, Any]:
    """The target of a function that has a process of its own; empty for any other function."""
    if isolation not in (None, kinds.PROCESS):
        raise DefinitionError(f"isolation must be 'process' or left out, not {isolation!r}")
    if isolation is None:
        if memory is not None or grace is not None:
            raise DefinitionError("memory and grace are for a process: add isolation='process'")
        return {}
    target: dict[str, Any] = {"kind": kinds.PROCESS}
    if memory is not None:
        target["memory_bytes"] = size(memory, "memory")
    if grace is not None:
        target["grace_s"] = seconds(grace, "grace")
    return target


def _positive(options: Mapping[str, Any], name: str) -> float | None:
    given = options.get(name)
    return None if given is None else positive_seconds(given, name)


def _needs(options: Mapping[str, Any], breakers: Sequence[Breaker], kind: str | None) -> Needs:
    """The requirements on a worker that takes the job."""
    requires = options.get("requires", ())
    found = needs(
        options.get("pool"),
        # `needs` refuses a single text, whose letters would be taken for tags.
        requires if isinstance(requires, str) else name_list(requires, "requires"),
        by_name(options.get("resources"), "resources", "{'gpu': 1}"),
        [breaker.name for breaker in breakers],
        options.get("affinity"),
        options.get("affinity_wait"),
    )
    flags = {"isolated": kind == kinds.PROCESS, "command": kind == kinds.COMMAND, "workflow": kind == kinds.WORKFLOW}
    return msgspec.structs.replace(found, **flags)


def _check_affinity(argument: str | None, signature: Signature, job: str) -> None:
    if argument is not None and not (isinstance(argument, str) and argument.isidentifier()):
        raise DefinitionError(f"job {job!r}: affinity must be the name of an argument, not {argument!r}")
    if argument is not None and not signature.takes(argument):
        raise DefinitionError(f"job {job!r}: affinity={argument!r}, but it has no argument of that name")


def _pause_after(number: int | None) -> int | None:
    is_number = isinstance(number, int) and not isinstance(number, bool)
    if number is not None and not (is_number and 0 < number <= MOST_FAILURES):
        raise DefinitionError(
            f"pause_after must be a number of failed executions in a row, from 1 to {MOST_FAILURES}, not {number!r}"
        )
    return number


# --- The data of a command or a request ---------------------------------------------------------

_RENAMED = {"retry_codes": "retry"}
"""Options of commands and requests that are called differently in their data, because jobs have one of that name."""
_FIELD = re.compile(r"at `\$\.(\w+)")
_WORDS = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "list[str]": "a list of texts",
    "Sequence[str | Reference]": "a list of texts, or of references such as {'env': 'TOKEN'}",
    "list[int]": "a list of whole numbers",
    "list[int | str]": "a list of codes, such as [200, '2xx', '500-599']",
    "Mapping[str, str | Reference]": "a table of texts by name, or of references such as {'env': 'TOKEN'}",
}


def executor_data(about: dict[str, Any], kind: type[S], required: Mapping[str, Any], job: str, what: str) -> S:
    """Takes the options of a command or a request out of `about` and makes its data of them."""
    for name, means in (("progress_timeout", "ctx.progress"), ("time_slice", "ctx.checkpoint")):
        if about.get(name) is not None:
            raise DefinitionError(
                f"job {job!r}: {name} is for a function that calls {means}, which {what} cannot; use timeout="
            )
    if "memory" in about:
        about["memory_bytes"] = size(about.pop("memory"), "memory")
    if "grace" in about:
        about["grace_s"] = seconds(about.pop("grace"), "grace")
    options = {field: field for field in kind.__struct_fields__ if field not in _RENAMED.values()}
    options = {option: field for option, field in {**options, **_RENAMED}.items() if option in about}
    data = {**required, **{field: about.pop(option) for option, field in options.items()}}
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        why = error.__cause__ if isinstance(error.__cause__, DefinitionError) else _readable(str(error), data, kind)
        raise DefinitionError(f"job {job!r}: {why}") from None


def words(argv: Any, job: str) -> list[Any]:
    """The words of a command as a list: only a shell takes a text apart."""
    if isinstance(argv, str | bytes) or not isinstance(argv, Sequence):
        raise DefinitionError(
            f"job {job!r}: a command is a list of texts, such as ['echo', 'hi'], not {str(argv)[:64]!r}; "
            "where you want a shell, name it: ['sh', '-c', '…']"
        )
    return list(argv)


def _readable(message: str, data: Mapping[str, Any], kind: type[msgspec.Struct]) -> str:
    found = _FIELD.search(message)
    if found is None or found[1] not in data:
        return message
    field = found[1]
    option = next((option for option, renamed in _RENAMED.items() if renamed == field), field)
    return f"{option} must be {_wanted(kind.__annotations__[field])}, not {_shown(data[field])}"


def _wanted(annotation: str) -> str:
    plain = annotation.removesuffix(" | None")
    if plain.startswith("Literal"):
        *others, last = ast.literal_eval(plain.removeprefix("Literal"))
        return f"{', '.join(map(repr, others))} or {last!r}"
    return _WORDS.get(plain, plain)


def _shown(value: Any) -> str:
    """A list or a table by the types in it, because there may be secrets beside the wrong value."""
    match value:
        case list() | tuple():
            return f"a list with {', '.join(sorted({type(one).__name__ for one in value})) or 'nothing'}"
        case Mapping():
            return f"a table with {', '.join(sorted({type(one).__name__ for one in value.values()})) or 'nothing'}"
        case _:
            return repr(value)[:64]
