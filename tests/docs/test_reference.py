"""The reference pages say what the code says, no more and no less; links between pages lead somewhere."""

from __future__ import annotations

import re
from typing import get_type_hints

import msgspec
import pytest

import rota
import rota.workflow
from rota import config
from rota.domain.errors import RotaError
from rota.domain.status import TERMINAL, Reason, Status
from rota.executors.http.request import Request
from rota.executors.process.command import Command
from rota.sdk.declaration import FunctionOptions
from rota.sdk.options import STEP_ONLY
from rota.sdk.schedule_options import When
from rota.sdk.workflow.declaring import WorkflowOptions
from rota.views import state_marks
from rota.views.shape import Shape
from tests.docs.pages import REPOSITORY, anchors, blocks, links, pages, table
from tests.support.moves import ALLOWED

STATES = "docs/state-machine.md"


def test_every_state_is_described() -> None:
    assert [row[0] for row in table(STATES, "States")] == [status.value for status in Status]


def test_the_table_of_moves_is_the_one_in_the_code() -> None:
    described = [(row[0], row[1]) for row in table(STATES, "Moves")]
    allowed = {
        (source.value if source else "(new)", target.value) for source, targets in ALLOWED.items() for target in targets
    }
    assert set(described) == allowed
    assert len(described) == len(allowed), "a move is listed twice"


def test_every_reason_is_described() -> None:
    assert {row[0] for row in table(STATES, "Reasons")} == {reason.value for reason in Reason}


def test_reasons_of_moves_are_reasons() -> None:
    named = {reason for row in table(STATES, "Moves") for reason in re.findall(r"\w+", row[3])}
    assert named == {reason.value for reason in Reason}


def test_the_picture_shows_only_allowed_moves() -> None:
    (picture,) = blocks(STATES, "mermaid")
    drawn = re.findall(r"^    (\S+) --> (\w+|\[\*\])", picture.body, re.MULTILINE)
    assert drawn
    for source, target in drawn:
        if target == "[*]":
            assert Status(source) in TERMINAL
        else:
            assert Status(target) in ALLOWED[None if source == "[*]" else Status(source)]


@pytest.mark.parametrize("page", ["docs/configuration.md", "README.md"])
def test_every_setting_is_described(page: str) -> None:
    rows = {row[0]: row for row in table(page, "Configuration" if page == "README.md" else "Settings")}
    assert list(rows) == list(config.Settings.__struct_fields__)
    for field in msgspec.structs.fields(config.Settings):
        row = rows[field.name]
        assert row[1] == f"ROTA_{field.name.upper()}"
        assert row[2].replace(",", "") == (
            f"{field.default:g}" if isinstance(field.default, float) else str(field.default)
        )


def options(page: str, heading: str) -> set[str]:
    """What the first cells of a table name."""
    return {name for row in table(page, heading) for name in re.findall(r"\w+", row[0])}


def test_every_option_of_a_job_is_described() -> None:
    of_when = set(When.__annotations__) | {"arguments"}  # Those of schedules have their own page.
    assert options("docs/jobs.md", "Apps and jobs") == set(get_type_hints(FunctionOptions)) - of_when


def test_every_option_of_a_workflow_is_described() -> None:
    of_when = set(When.__annotations__) | {"arguments"}
    assert options("docs/workflows.md", "Options of a workflow") == set(get_type_hints(WorkflowOptions)) - of_when
    assert options("docs/workflows.md", "Options") == set(STEP_ONLY)


def test_every_function_for_workflows_is_described() -> None:
    page = pages()["docs/workflows.md"]
    assert not [name for name in rota.workflow.__all__ if not re.search(rf"`[^`\n]*\b{name}\b|{name}[,(]", page)]


@pytest.mark.parametrize(("kind", "heading"), [(Command, "Commands"), (Request, "Requests")])
def test_every_option_of_a_command_and_a_request_is_described(kind: type[msgspec.Struct], heading: str) -> None:
    said = {"retry": "retry_codes", "memory_bytes": "memory", "grace_s": "grace"}
    fields = {said.get(field, field) for field in kind.__struct_fields__ if field not in ("argv", "url")}
    assert options("docs/execution.md", heading) == fields


def test_bounds_of_settings_are_those_in_the_code() -> None:
    for row in table("docs/configuration.md", "Settings"):
        if row[0] in config._BOUNDS:
            low, high = (float(number.replace(",", "")) for number in row[3].split(" – "))
            assert (low, high) == config._BOUNDS[row[0]], row[0]


@pytest.mark.parametrize("name", rota.__all__)
def test_every_public_name_is_described(name: str) -> None:
    described = [
        page for page, text in pages().items() if page.startswith("docs/") and re.search(rf"`[^`]*\b{name}\b", text)
    ]
    assert described


def test_errors_have_the_codes_that_are_described() -> None:
    described = {row[0]: row[1] for row in table("docs/jobs.md", "Errors")}
    public = [getattr(rota, name) for name in rota.__all__]
    errors = [kind for kind in public if isinstance(kind, type) and issubclass(kind, RotaError)]
    assert described == {kind.__name__: kind.code for kind in errors}


VALUES = "docs/values.md"


@pytest.mark.parametrize("heading", re.findall(r"^## (\w+)$", pages()[VALUES], re.MULTILINE))
def test_members_of_values_have_the_types_that_are_described(heading: str) -> None:
    kind = getattr(rota, heading)
    hints = {
        name: hint for base in reversed(kind.__mro__) for name, hint in vars(base).get("__annotations__", {}).items()
    }
    properties = {name: one.fget for name, one in vars(kind).items() if isinstance(one, property)}
    hints |= {name: get.__annotations__["return"] for name, get in properties.items()}
    described = {row[0]: row[1].replace("`", "").replace(" or ", " | ") for row in table(VALUES, heading)}
    assert described == {name: hints[name] for name in (*kind.__struct_fields__, *properties)}
    assert list(described) == [*kind.__struct_fields__, *properties]


def test_every_value_is_described() -> None:
    values = [name for name in rota.__all__ if issubclass(getattr(rota, name), Shape)]
    assert sorted(values) == sorted(re.findall(r"^## (\w+)$", pages()[VALUES], re.MULTILINE))


def test_a_decision_is_read_in_a_minute() -> None:
    folder = REPOSITORY / "docs" / "decisions"
    lines = {page.name: len(page.read_text().splitlines()) for page in folder.glob("[0-9]*.md")}
    assert lines
    assert {name: count for name, count in lines.items() if count > 40} == {}


def test_every_decision_is_listed() -> None:
    listed = set(links("docs/decisions/README.md"))
    folder = REPOSITORY / "docs" / "decisions"
    assert listed == {path.name for path in folder.glob("[0-9]*.md")}


@pytest.mark.parametrize("page", list(pages()))
def test_links_lead_somewhere(page: str) -> None:
    broken = [
        link for link in links(page) if not re.match(r"https?://|mailto:", link) and not leads_somewhere(page, link)
    ]
    assert not broken


def leads_somewhere(page: str, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (REPOSITORY / page).parent / path if path else REPOSITORY / page
    if not target.exists():
        return False
    if not anchor:
        return True
    name = target.resolve().relative_to(REPOSITORY).as_posix()
    return name in pages() and anchor in anchors(name)


def test_how_states_are_shown() -> None:
    shown = [
        [
            str(status),
            state.icon.replace("-", " "),
            state.colour,
            f"{state.sign}` {state_marks.terminal_colour(status).replace('_', ' ')}",
            state.mark,
        ]
        for status, state in state_marks.MARKS.states.items()
    ]
    assert list(table(STATES, "How states are shown")) == shown
