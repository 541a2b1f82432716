"""Every default and every limit that the docs state is the one in the code.

A default in a table, or in brackets behind the name of a setting or an option, is compared as a value. Any other
sentence is in the list `SENTENCES`, with its numbers computed from the code. A sentence that has the word "default" and
is in none of them fails the last test.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import click
import msgspec
import pytest

from rota.api.query import Page
from rota.cli.main import cli
from rota.config import Settings
from rota.domain import (
    breaker,
    deploy,
    lifecycle,
    load,
    names,
    payload,
    rank,
    requirement,
    retry,
    tick_policy,
    unique,
)
from rota.domain import retention as retention_rules
from rota.domain.duration import seconds
from rota.domain.instant import MICROSECONDS
from rota.domain.job import Definition
from rota.domain.schedule import Spec
from rota.domain.unique import Unique
from rota.domain.workflow import check, graph
from rota.engine import autoscale, worker
from rota.executors import reference
from rota.executors.http import resolver
from rota.executors.http.request import Request
from rota.executors.process import exit_process, start_backoff, warm_process
from rota.executors.process.command import Command
from rota.executors.signature import Signature
from rota.ops import blockers, enqueue, job_pauses, submission
from rota.ops import retention as pruning
from rota.ops.gates import step_inputs
from rota.ops.runs import expand
from rota.ops.runs import result as run_result
from rota.ops.runs import start as run_start
from rota.sdk import declaration, schedule_options
from rota.sdk.declaration import FunctionOptions
from rota.sdk.options import MOST_TAGS
from rota.sdk.schedule_options import When
from rota.store import load_reader
from rota.store.postgres.url import DEFAULT_SCHEMA
from tests.docs.pages import REPOSITORY, pages, prose, table

PAGES = [page for page in pages() if page == "README.md" or re.fullmatch(r"docs/[\w-]+\.md", page)]
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
SETTINGS = {field.name: field.default for field in msgspec.structs.fields(Settings)}


def defaults(page: str, heading: str) -> list[tuple[str, str]]:
    """Every option in a table, with the default beside it."""
    found: list[tuple[str, str]] = []
    for row in table(page, heading):
        options = re.findall(r"\w+", row[0])
        values = row[1].split(", ") if len(options) > 1 else [row[1]]
        values = values * len(options) if len(values) == 1 else values
        found += zip(options, (value.strip("`") for value in values), strict=True)
    return found


def literal(text: str) -> Any:
    """The value of a default in a table. Numbers have a comma after each thousand."""
    return (
        None if text == "none" else ast.literal_eval(text.replace(",", "") if re.fullmatch(r"[\d,]+", text) else text)
    )


def empty(kind: type[Any], option: str) -> Any:
    """The value that is the same as leaving an option out."""
    return None if type(None) in get_args(get_type_hints(kind)[option]) else ()


# --- Tables ---------------------------------------------------------------------------------------

IN_WORDS = {"name": "the function's name", "description": "the first line of the docstring"}
TOGETHER = {"affinity_wait": {"affinity": "customer"}}
"""Options that mean something only beside others."""


def declared(**options: Any) -> Definition:
    """The definition of a function with these options."""

    def function(customer: int) -> None: ...

    rules = declaration.rules(options, ())
    return declaration.definition("function", Signature(function, "function"), rules, {}, options, "")


@pytest.mark.parametrize(("option", "default"), defaults("docs/jobs.md", "Apps and jobs"))
def test_an_option_of_a_job_has_its_default(option: str, default: str) -> None:
    if option in IN_WORDS:
        assert default == IN_WORDS[option]
    elif option == "grace":
        assert seconds(literal(default)) == warm_process.GRACE_S
    else:
        value = empty(FunctionOptions, option) if default == "none" else literal(default)
        others = TOGETHER.get(option, {})
        assert declared(**others, **{option: value}) == declared(**others)


@pytest.mark.parametrize(
    "wrong", [{"timeout": "2h"}, {"retry": 4}, {"affinity": "customer", "affinity_wait": "6s"}, {"total_timeout": "1h"}]
)
def test_another_default_would_be_found(wrong: dict[str, Any]) -> None:
    assert declared(**wrong) != declared(**{name: value for name, value in wrong.items() if name == "affinity"})


def planned(trigger: dict[str, Any], **options: Any) -> dict[str, Any]:
    given: Any = {**trigger, **options}
    (spec,) = schedule_options.specs(declared(), "shop", given, "{}")
    return {**msgspec.structs.asdict(spec), "window_s": spec.reach_s}


@pytest.mark.parametrize(("option", "default"), defaults("docs/schedules.md", "Options"))
def test_an_option_of_a_schedule_has_its_default(option: str, default: str) -> None:
    trigger = {"every": "5m"} if option == "phase" else {"cron": "0 9 * * *"}
    if default == "none":
        assert not planned(trigger)[{"exclude": "excluded"}.get(option, option)]
    else:
        assert planned(trigger, **{option: literal(default)}) == planned(trigger)


def test_every_option_of_a_schedule_is_described() -> None:
    triggers = {"cron", "every", "after", "at"}
    assert {option for option, _ in defaults("docs/schedules.md", "Options")} == set(When.__annotations__) - triggers


RENAMED = {"retry_codes": "retry", "memory": "memory_bytes", "grace": "grace_s"}


@pytest.mark.parametrize(("kind", "heading"), [(Command, "Commands"), (Request, "Requests")])
def test_an_option_of_a_command_and_of_a_request_has_its_default(kind: type[msgspec.Struct], heading: str) -> None:
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    for option, default in defaults("docs/execution.md", heading):
        field = fields[RENAMED.get(option, option)]
        factory = field.default_factory
        value = field.default if factory is msgspec.NODEFAULT else factory()
        said = seconds(literal(default)) if option == "grace" else literal(default)
        assert codes(said or None) == codes(value or None), option


def codes(value: Any) -> Any:
    """Status codes have several notations: `"2xx"` is `"200-299"`, and 408 is `"408"`."""
    if not isinstance(value, list):
        return value
    return [re.sub(r"^(\d)xx$", r"\g<1>00-\g<1>99", str(code)) for code in value]


def test_parameters_of_the_function_in_sql_have_their_defaults() -> None:
    schema = (REPOSITORY / "src/rota/store/migrations/postgres/0001_schema.sql").read_text("utf-8")
    (signature,) = re.findall(r"CREATE FUNCTION enqueue\((.*?)\n\) RETURNS", schema, re.DOTALL)
    defined = re.findall(r"^ +(\w+) ([\w\[\]]+)(?: DEFAULT (\S+?))?,?$", signature, re.MULTILINE)
    described: dict[tuple[str, str], str] = {}
    for row in table("docs/transactions.md", "From SQL"):
        parameters = re.findall(r"(\w+) ([\w\[\]]+)(?=`|$)", row[0].replace("` or `", "`, `"))
        said = row[1].split(", ") if len(parameters) > 1 else [row[1]]
        said = said * len(parameters) if len(said) == 1 else said
        described |= {pair: value.strip("`") for pair, value in zip(parameters, said, strict=True)}
    assert set(described) == {(name, kind) for name, kind, _ in defined}
    for name, kind, default in defined:
        # NULL leaves the decision to the function: the docs say in words what it is.
        if default != "NULL":
            assert described[name, kind] == (default.strip("'") or "–"), name


@pytest.mark.parametrize("row", list(table("docs/jobs.md", "Failing and retrying"))[:3], ids=lambda row: row[0])
def test_a_retry_policy_has_its_defaults(row: list[str]) -> None:
    call = ast.parse(row[0], mode="eval").body
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Name)
    policy = getattr(retry, call.func.id)
    given = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords if keyword.arg}
    assert policy(**given) == policy()
    assert set(given) == set(policy.__struct_fields__) - {"attempts", "only", "never"}


def test_scopes_and_conflicts_have_their_defaults() -> None:
    section = pages()["docs/jobs.md"]
    assert re.findall(r'^\| `"(\w+)"` \(default\)', section, re.MULTILINE) == [Unique().scope, Unique().on_conflict]


# --- The command line -----------------------------------------------------------------------------


def stated_options() -> Iterator[tuple[str, str, str]]:
    """Every (command, option, default) on the page of the command line."""
    page = "docs/cli.md"
    sections = re.split(r"^### `rota ([a-z ]*[a-z]).*$", pages()[page], flags=re.MULTILINE)
    for command, section in zip(sections[1::2], sections[2::2], strict=True):
        for line in re.sub(r"(?<!\|)\n(?!\|)", " ", section).splitlines():
            for option, value in re.findall(r"`(--?[a-z-]+)[^`]*`[^`]*?\(default:? ([^)]+)\)", line):
                yield command, option, value
            if (found := re.match(r"\| `(--[a-z-]+).*`(\w+)` \(default\)", line)) is not None:
                yield command, found[1], found[2]


@pytest.mark.parametrize(("command", "option", "said"), list(stated_options()))
def test_an_option_of_a_command_has_its_default(command: str, option: str, said: str) -> None:
    value = default_of(command, option)
    if value is None:
        assert " " in said, "the code has no value, so the docs say in words what happens"
    elif isinstance(value, int | float):
        assert float(said.replace(",", "").removesuffix(" s")) == value
    else:
        assert said.lower().replace(" ", "") == value.lower()


def default_of(command: str, option: str) -> str | float | None:
    """The default of an option of a command: its own, that of a setting, or that of a unique key."""
    found: click.Command = cli
    for name in command.split():
        assert isinstance(found, click.Group)
        found = found.get_command(click.Context(found), name) or found
    (parameter,) = [one for one in found.params if option in one.opts]
    own = parameter.get_default(click.Context(found))
    if own and isinstance(own, str | int | float):
        return own
    name = str(parameter.name)
    of_unique = {"unique_for": Unique().scope, "on_conflict": Unique().on_conflict}
    return {**SETTINGS, **of_unique}.get(name, SETTINGS.get(f"{name}_s"))


def test_options_with_defaults_are_found() -> None:
    found = {(command, option) for command, option, _ in stated_options()}
    assert {("worker", "--grace"), ("executions", "--limit"), ("next", "--tz"), ("enqueue", "--on-conflict")} <= found


# --- Sentences ------------------------------------------------------------------------------------

COMPARED = re.compile(r"`--[^`]*` \(default [^)]*\)|`[^`]*`|\| default \||\(default(?::? [^)]*)?\)(?=.* \|$)")
"""Options of commands with their defaults, code, the heads of tables, and defaults in brackets in a table."""
NAMED = re.compile(r"`(\w+)`(?: =)? \(([\w,.]+)(?: (s|seconds))?(?: by default)?\)")
"""A setting or an option with its value in brackets: `poll_s` (two seconds)."""
OPTIONS = {"affinity_wait": requirement.AFFINITY_WAIT_S, **SETTINGS}


@pytest.mark.parametrize("page", PAGES)
def test_values_in_brackets_are_those_of_the_code(page: str) -> None:
    for name, said, _ in NAMED.findall(prose(page)):
        if name in OPTIONS:
            value = WORDS.index(said) if said in WORDS else float(said.replace(",", ""))
            assert value == OPTIONS[name], f"{name} ({said})"


def test_values_in_brackets_are_found() -> None:
    found = {(page, name) for page in PAGES for name, *_ in NAMED.findall(prose(page)) if name in OPTIONS}
    assert {("docs/postgresql.md", "poll_s"), ("docs/execution.md", "affinity_wait")} <= found
    assert len(found) >= 8


def word(number: float) -> str:
    return WORDS[int(number)]


def mib(number: int) -> str:
    assert number % 1024**2 == 0
    return f"{number // 1024**2} MiB"


def kib(number: int) -> str:
    assert number % 1024 == 0
    return f"{number // 1024} KiB"


(MOST_CAUGHT_UP,) = [field.default for field in msgspec.structs.fields(Spec) if field.name == "catch_up_most"]
LEASE = f"{Settings().lease_s:g} s"
LEVELS = {name: rank.level(name) for name in ("high", "normal", "low")}
LEVEL_S = rank.HEAD_START // MICROSECONDS
STOP = word(worker.STOP_GRACE_S)
CRASHES = word(lifecycle.CRASH_CAP)
ITEMS = f"{submission.MOST_ITEMS:,}"
FIRST_WAIT = f"`high` ({LEVELS['high']}), `normal` ({LEVELS['normal']}), `low` ({LEVELS['low']})"
RECYCLED = f"{Settings().recycle_jobs:,} jobs, for an hour, or until it holds {Settings().recycle_bytes // 1024**2} MB"
assert Settings().recycle_s == 3600
assert pruning.LEDGER_S == 400 * 86_400
assert retention_rules.AUDIT_S == 365 * 86_400

SENTENCES = {
    "docs/http.md": [
        f"`limit` is 1 to 1,000, by default {Page().limit}.",
        "null puts the default back.",
        "or of the app default.",
    ],
    "README.md": [
        f"(with the default lease of {LEASE})",
    ],
    "docs/configuration.md": [
        "the defaults below",
        f"{kib(payload.MOST_MESSAGE)}; {kib(payload.MOST_TRACEBACK)}, both ends kept",
        f"| depth of nested JSON | {payload.DEEPEST} |",
        f"| crashes that an execution is charged with | {lifecycle.CRASH_CAP} |",
        f"| attempts of one execution | {retry.MOST_ATTEMPTS:,} |",
        f"| time that a job has to stop when it is asked to | {worker.STOP_GRACE_S:g} s |",
        f"| names | {names.LONGEST} letters",
        f"| keys | {unique.LONGEST_KEY} printable characters",
        f"their arguments together | {ITEMS}; {mib(submission.MOST_BYTES)} |",
    ],
    "docs/jobs.md": [
        f"All policies have `attempts={retry.DEFAULT.attempts}`",
        f"`Exponential()`: {word(retry.DEFAULT.attempts)} attempts",
        f"`Custom` with up to {retry.MOST_ATTEMPTS:,} attempts",
        f"Under the policy `{rank.Policy('priority')}`, the default,",
        f"minus {LEVEL_S} seconds per level of priority. So `high` ({LEVELS['high']})",
        "add parameters with a default",
        "A default that you do not give is not stored: the function's default at the time of the run applies",
        "the job with other defaults",
        "A call that omits a default",
        f"more than {payload.DEEPEST} levels",
        f"exponent beyond ±{payload.MOST_EXPONENT}",
        f"at most {ITEMS} in one call, with {mib(submission.MOST_BYTES)} of arguments",
        f"a list of up to {MOST_TAGS} strings",
        f"If it has not stopped {STOP} seconds later",
        f"The count may be {enqueue.DEPTH_AGE_S} s old",
    ],
    "docs/execution.md": [
        RECYCLED,
        f"handlers first, for at most {word(exit_process.HANDLERS_S)} seconds",
        f"after {CRASHES} crashes that job is a dead letter",
        f"queued again after {start_backoff.DELAY_S / 2} to {start_backoff.DELAY_S * 1.5} s",
        f"For {word(start_backoff.FIRST_PAUSE_S)} second it claims no job that needs a process",
        f"it waits two seconds, then four, up to {start_backoff.LONGEST_PAUSE_S:g}.",
        f"After {word(breaker.DEFAULT_FAILURES)} failures in a row of jobs",
        f'defaults are `failures={breaker.DEFAULT_FAILURES}` and `wait="{breaker.DEFAULT_WAIT}"`',
        f"up to {breaker.DOUBLINGS} times the first wait",
        f"and up to {resolver.MOST_LOOKUPS} in total",
        f"up to {kib(reference.MOST_BYTES)}",
        f"at least {word(reference.SHORTEST)} characters",
        f"for {word(autoscale.GROW_AFTER_S)} seconds, every process used {autoscale.FULL:.0%}".replace("%", " %"),
        f"stay below {autoscale.SPARE:.0%}".replace("%", " %"),
        f"doubled, up to {word(autoscale.LONGEST_QUIET_S / 60)} minutes",
        f"within {word(autoscale.SOON)} times that time",
        f"serves the pool `{requirement.DEFAULT_POOL}`",
        "or from `http` to `https` on the default ports",
    ],
    "docs/schedules.md": [
        f"A tick that is at most {tick_policy.GRACE_S} s late",
        f'| `"all"` | the newest {MOST_CAUGHT_UP} |',
        f"all of them (up to {tick_policy.MOST_HELD:,})",
        "The ledger is kept for 400 days",
    ],
    "docs/workflows.md": [
        f"levels of runs below each other are allowed ({graph.MOST_NESTING})",
        f"how many items a map may have ({graph.MOST_WIDTH:,}; at most {check.WIDEST:,})",
        f"a workflow has at most {graph.MOST_STEPS:,} steps",
        f"the first {run_start.AT_FIRST} items are placed",
        f"in chunks of {expand.CHUNK:,}, each when a worker has taken the first item",
        f"a map is one step | {graph.MOST_STEPS:,} |",
        f"`max_width`: {graph.MOST_WIDTH:,} unless set, up to {check.WIDEST:,} |",
        f"`max_nesting`: {graph.MOST_NESTING} unless set, up to {check.DEEPEST:,} |",
        f"| result of a run | {mib(run_result.MOST_RESULT_BYTES)} of JSON",
        f"the results that they refer to | {mib(step_inputs.MOST_BYTES)} of JSON",
    ],
    "docs/transactions.md": [
        f"`{DEFAULT_SCHEMA}` by default",
        f"The limit of {Settings().max_payload_bytes:,} bytes",
        f"up to its limit of {ITEMS}",
        "whatever the default of the role or the database is",
    ],
    "docs/operations.md": [
        f"for {word(deploy.GRACE_LEASES)} leases (a minute, with the default `lease_s` of {LEASE})",
        f"for {word(deploy.GRACE_LEASES)} leases. A draining worker is live.",
        f"After the grace period a job has {STOP} seconds to stop.",
        f"Handlers have {word(exit_process.HANDLERS_S)} seconds",
        f"an `enqueue_many` of {ITEMS} executions",
        f"their process died {CRASHES} times",
        f"ends as cancelled after {STOP} seconds",
        f"more than {load_reader.MOST_ARRIVALS:,}, the rate",
        f"among the {load_reader.MOST_ENDS:,} newest",
        f"`runS` counts as {word(load.ASSUMED_RUN_S)} second",
        "the audit trail | a year",
        "move to the default partition",
        "in the default partition, and in days",
        "go to the default partition",
        "rows in the default partition",
    ],
    "docs/guarantees.md": [
        f"at the default lease of {LEASE}",
        f"one priority level equals {LEVEL_S} s",
        f"at most {retry.MOST_ATTEMPTS:,} attempts; {CRASHES} crashes",
        f"up to {word(job_pauses.KNOWN_S)} second late",
        f"The count may be {enqueue.DEPTH_AGE_S} s old",
        "It is kept for 400 days",
    ],
    "docs/glossary.md": [
        f"Default: `{Settings().namespace}`",
        f"are in the pool `{requirement.DEFAULT_POOL}`",
        "`priority` (the default) or `fifo`",
        f"{FIRST_WAIT}. One more point counts as much as {LEVEL_S} s",
        f"no worker fired within {tick_policy.GRACE_S} seconds",
        "by default the newest",
        "and its defaults (queue, priority, retry, timeouts)",
    ],
    "docs/state-machine.md": [
        f"in batches of {blockers.MOST}",
        f"the results that they refer to, exceed {mib(step_inputs.MOST_BYTES)}",
    ],
    "docs/cli.md": [
        "`default` for the setting `retention_days`",
        "--queues mail,default",
        f"`{Settings().url}` in the current folder",
    ],
    "docs/development.md": [
        "Default signal handlers",
        "restores the defaults",
        "names, options, defaults and limits",
        "A new sentence that states a default",
    ],
}


@pytest.mark.parametrize("page", list(SENTENCES))
def test_numbers_in_sentences_are_those_of_the_code(page: str) -> None:
    missing = [sentence for sentence in SENTENCES[page] if sentence not in prose(page)]
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("page", PAGES)
def test_every_default_is_compared(page: str) -> None:
    """Takes away everything that another test compares. If a default is left, add it to `SENTENCES` or to a table."""
    text = prose(page)
    for sentence in SENTENCES.get(page, []):
        text = text.replace(sentence, "")
    text = NAMED.sub("", text)
    left = [line for line in text.splitlines() if re.search(r"\bdefaults?\b", COMPARED.sub("", line), re.IGNORECASE)]
    assert not left, "\n".join(left)
