"""Pictures of a graph: as lines of text, for Mermaid and for Graphviz."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rota.domain.workflow import condition as conditions
from rota.domain.workflow import template
from rota.domain.workflow import wait as waits
from rota.domain.workflow.graph import Condition, Graph, Step, Template
from rota.domain.workflow.reference import RESERVED
from rota.domain.workflow.wait import Approve, AwaitEvent, Sleep, Wait

_MERMAID_SHAPES = {"job": ('["', '"]'), "workflow": ('[["', '"]]'), "wait": ('(["', '"])')}
_DOT_SHAPES = {"job": "", "workflow": ", shape=box3d", "wait": ", shape=oval"}
_SIGNS = {"eq": "=", "ne": "≠", "lt": "<", "le": "≤", "gt": ">", "ge": "≥", "in": "in"}


def text(graph: Graph) -> str:
    """One line per step: its name, what it waits for, and its options."""
    width = max((len(_title(step)) for step in graph.steps), default=0)
    lines = [f"{graph.name}({', '.join(graph.parameters)})"]
    for step in graph.steps:
        about = "   ".join([*_waits(graph, step), *_notes(step)])
        lines.append(f"  {_title(step):{width}}  {about}".rstrip())
    if graph.result is not None:
        lines.append(f"  result: {template_words(graph.result)}")
    return "\n".join(lines)


def mermaid(graph: Graph) -> str:
    lines = ["flowchart TD"]
    for number, step in enumerate(graph.steps):
        label = "<br/>".join(map(_html, [_title(step), *_notes(step)]))
        opening, closing = _MERMAID_SHAPES[_kind(step)]
        lines.append(f"    s{number}{opening}{label}{closing}")
    for before, after, is_data, label in _edges(graph):
        arrow = "-->" if is_data else "-.->"
        lines.append(f"    s{before} {arrow}{f'|{_html(label)}|' if label else ''} s{after}")
    return "\n".join(lines)


def dot(graph: Graph) -> str:
    lines = [f"digraph {json.dumps(graph.name)} {{", "    node [shape=box];"]
    for step in graph.steps:
        label = json.dumps("\n".join([_title(step), *_notes(step)]), ensure_ascii=False)
        shape = _DOT_SHAPES[_kind(step)]
        lines.append(f"    {json.dumps(step.id)} [label={label}{shape}];")
    for before, after, is_data, label in _edges(graph):
        style = [] if is_data else ["style=dashed"]
        style += [f"label={json.dumps(label)}"] if label else []
        about = f" [{', '.join(style)}]" if style else ""
        lines.append(f"    {json.dumps(graph.steps[before].id)} -> {json.dumps(graph.steps[after].id)}{about};")
    return "\n".join([*lines, "}"])


def condition_words(condition: Condition) -> str:
    """A condition for people: `size.pages > 500`, `load failed`."""
    ((operator, operand),) = condition.items()
    match operator:
        case "not":
            return f"not ({condition_words(operand)})"
        case "all" | "any":
            joint = " and " if operator == "all" else " or "
            return joint.join(f"({condition_words(one)})" for one in operand)
        case "is_none":
            return f"{template_words(operand)} is none"
        case "is_true":
            return template_words(operand)
        case "succeeded" | "failed" | "skipped":
            return f"{operand} {operator}"
        case _:
            one, other = map(template_words, operand)
            return f"{one} {_SIGNS[operator]} {other}"


def template_words(one: Template) -> str:
    match one:
        case {"$": reference}:
            return str(reference)
        case {"$first": choices}:
            return f"first({', '.join(map(template_words, choices))})"
        case {"$default": [choice, other]}:
            return f"default({template_words(choice)}, {template_words(other)})"
        case {"$outcomes": step}:
            return f"outcomes({step})"
        case {"$text": pattern, **_values}:
            return json.dumps(pattern, ensure_ascii=False)
        case {"$literal": value}:
            return json.dumps(value, ensure_ascii=False)
        case dict():
            return "{" + ", ".join(f"{name}: {template_words(value)}" for name, value in one.items()) + "}"
        case list() | tuple():
            return f"[{', '.join(map(template_words, one))}]"
        case _:
            return json.dumps(one, ensure_ascii=False)


def _kind(step: Step) -> str:
    return "wait" if step.wait is not None else "job" if step.workflow is None else "workflow"


def wait_words(wait: Wait) -> str:
    """What a step waits for, for how long, and what the timeout does: `ops: "Release?", 2d, then reject`."""
    match wait:
        case Sleep():
            return waits.words(wait.duration)
        case Approve():
            who = f"{', '.join(wait.who)}: " if wait.who else ""
            required = ", required" if wait.required else ""
            return f"{who}{template_words(wait.text)}, {waits.words(wait.timeout)}, then {wait.on_timeout}{required}"
        case AwaitEvent():
            subject = "" if wait.subject is None else f" of {template_words(wait.subject)}"
            where = "" if wait.where is None else f" where {template_words(wait.where)}"
            names = " or ".join(wait.names)
            return f"{names}{subject}{where}, {waits.words(wait.timeout)}, then {wait.on_timeout}"


def _title(step: Step) -> str:
    runs = "" if step.runs == step.id else f" ({step.runs})"
    return f"{step.id}{runs}{' ×' if step.is_map else ''}"


def _waits(graph: Graph, step: Step) -> Iterator[str]:
    if values := _used(graph, step):
        yield f"← {', '.join(values)}"
    if step.after:
        rule = "" if step.rule == "all_success" else f" {step.rule}"
        yield f"after{rule} {', '.join(step.after)}"


def _notes(step: Step) -> Iterator[str]:
    if step.wait is not None:
        yield wait_words(step.wait)
    if step.when:
        yield f"when {' and '.join(map(condition_words, step.when))}"
    if step.at_once is not None:
        yield f"{step.at_once} at once"
    if step.tolerate is not None:
        yield f"tolerates {step.tolerate}"
    if step.may_fail:
        yield "may fail"
    if step.undo is not None:
        yield f"undo {step.undo}{', also if it fails' if step.undo_failed else ''}"


def _used(graph: Graph, step: Step) -> list[str]:
    """The steps whose values are arguments of the step, in the order of the graph."""
    uses = template.references(step.values)
    names = [one.root for use in uses for one in use.references if one.root not in RESERVED]
    return sorted(set(names), key=graph.numbers.__getitem__)


def _edges(graph: Graph) -> Iterator[tuple[int, int, bool, str]]:
    """Both numbers, whether a value flows, and a label."""
    for number, step in enumerate(graph.steps):
        used = _used(graph, step)
        uses = [use for condition in step.when for use in conditions.references(condition)]
        asked = [one.root for use in uses for one in use.references if one.root not in RESERVED]
        for name in used:
            yield graph.numbers[name], number, True, ""
        for name in step.after:
            yield graph.numbers[name], number, False, "" if step.rule == "all_success" else step.rule
        for name in dict.fromkeys(asked):
            if name not in used and name not in step.after:
                yield graph.numbers[name], number, False, "when"


def _html(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
