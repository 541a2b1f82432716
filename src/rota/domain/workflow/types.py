"""The types of a graph's values, as far as they are known: do references lead somewhere, do values fit parameters?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from rota.domain.workflow import schema, template
from rota.domain.workflow.graph import Condition, Graph, Step, Template
from rota.domain.workflow.reference import INPUT, RUN, Reference, parse
from rota.domain.workflow.schema import BOOLEAN, LIST, STRING, NoMember, Schema
from rota.domain.workflow.wait import Approve, AwaitEvent, Decision, Event, Sleep, Wait

RUN_INFO: Schema = {
    "type": "object",
    "title": "RunInfo",
    "properties": dict.fromkeys(("id", "workflow", "scheduled_for", "started_at"), STRING),
}
OUTCOME: Schema = {
    "type": "object",
    "title": "StepOutcome",
    "properties": {"index": {"type": "integer"}, "status": STRING, "result": {}, "error": {}},
}
RESULTS: dict[type[Wait], Schema] = {
    Sleep: {"type": "null"},
    Approve: msgspec.json.schema(Decision),
    AwaitEvent: msgspec.json.schema(Event),
}
"""The type of the value of each kind of wait."""
Finding = tuple[str, str]
"""The place below the step, as a JSON pointer, and what is wrong there."""


def escaped(name: str) -> str:
    """A name as a part of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


class Types:
    """Looks up the schema of every reference in a graph."""

    def __init__(self, graph: Graph, results: Mapping[str, Schema]) -> None:
        """`results` has the schema of each step's result, of one item for a map, where it is known."""
        self._roots: dict[str, Schema] = {
            INPUT: {"type": "object", "properties": graph.parameters},
            RUN: RUN_INFO,
        }
        for step in graph.steps:
            result = results.get(step.id, {})
            self._roots[step.id] = schema.list_of(result) if step.is_map else result

    def about(self, step: Step, parameters: Mapping[str, Schema]) -> Iterator[Finding]:
        """The type errors of one step."""
        for name, argument in step.arguments.items():
            yield from self._argument(
                f"/with/{escaped(name)}", f"argument {name!r}", argument, parameters.get(name, {})
            )
        if step.is_map:
            yield from self._items(step, parameters)
        if step.approve is not None:
            yield from self._argument("/approve/text", "the text", step.approve.text, STRING)
        if step.event is not None and step.event.subject is not None:
            yield from self._argument("/event/subject", "the subject", step.event.subject, STRING)
        if step.event is not None:
            yield from (("/event/where", message) for message in self.missing(step.event.where))
        for number, condition in enumerate(step.when):
            yield from ((f"/when/{number}", message) for message in self._condition(condition))

    def missing(self, one: Template) -> list[str]:
        """The references in a template that lead nowhere."""
        uses = (reference for use in template.references(one) for reference in use.references)
        return [message for reference in uses if (message := self._problem(reference))]

    def of(self, one: Template) -> Schema:
        """The schema of a template's value. Its references lead somewhere."""
        match one:
            case {"$": text}:
                return self._at(parse(text))
            case {"$first": choices}:
                return schema.any_of([self.of(choice) for choice in choices])
            case {"$default": [choice, other]}:
                return schema.any_of([self.of(choice), self.of(other)])
            case {"$outcomes": _}:
                return schema.list_of(OUTCOME)
            case {"$text": _}:
                return STRING
            case {"$literal": value}:
                return schema.of_literal(value)
            case dict():
                properties = {name: self.of(value) for name, value in one.items()}
                return {"type": "object", "properties": properties, "required": list(one)}
            case list() | tuple():
                return schema.tuple_of([self.of(value) for value in one])
            case _:
                return schema.of_literal(one)

    def _argument(self, place: str, what: str, argument: Template, wanted: Schema) -> Iterator[Finding]:
        if missing := self.missing(argument):
            yield place, f"{what}: {missing[0]}"
        elif not schema.fits(found := self.of(argument), wanted):
            yield place, f"{what} takes {schema.words(wanted)}, but this is {schema.words(found)}"

    def _items(self, step: Step, parameters: Mapping[str, Schema]) -> Iterator[Finding]:
        if missing := self.missing(step.map):
            yield "/map", f"the items of the map: {missing[0]}"
            return
        items = self.of(step.map)
        if not schema.fits(items, LIST):
            yield "/map", f"a map needs a list, but this is {schema.words(items)}"
        elif step.item is not None:
            wanted, item = parameters.get(step.item, {}), schema.item(items)
            if not schema.fits(item, wanted):
                yield (
                    "/map",
                    f"argument {step.item!r} takes {schema.words(wanted)}, but each item is {schema.words(item)}",
                )

    def _condition(self, condition: Condition) -> Iterator[str]:
        ((operator, operand),) = condition.items()
        if operator == "not":
            yield from self._condition(operand)
        elif operator in ("all", "any"):
            for one in operand:
                yield from self._condition(one)
        elif operator in ("succeeded", "failed", "skipped"):
            return
        elif missing := self.missing(operand):
            yield f"the condition {operator}: {missing[0]}"
        elif operator == "is_true" and not schema.fits(found := self.of(operand), BOOLEAN):
            yield f"a condition is true or false, but this is {schema.words(found)}: compare it with a value"
        elif operator in ("eq", "ne", "lt", "le", "gt", "ge"):
            one, other = map(self.of, operand)
            is_null = operator in ("eq", "ne") and None in operand
            if not is_null and not schema.fits(one, other) and not schema.fits(other, one):
                yield f"{schema.words(one)} is compared with {schema.words(other)}"

    def _problem(self, reference: Reference) -> str:
        try:
            self._at(reference)
        except NoMember as error:
            return str(error)
        return ""

    def _at(self, reference: Reference) -> Schema:
        found = self._roots[reference.root]
        for depth, key in enumerate(reference.path):
            try:
                found = schema.member(found, key)
            except NoMember as error:
                here = Reference(reference.root, reference.path[:depth])
                raise NoMember(f"{reference} leads nowhere: of {here}, {error}") from None
        return found
