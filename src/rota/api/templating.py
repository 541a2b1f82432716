"""Jobs that are made of a template: the body of a job with the template's definition and the given values."""

from __future__ import annotations

from typing import Any

import msgspec

from rota.api import body as bodies
from rota.api import job_targets
from rota.api.job_body import COMMAND_ONLY, NAMES, TARGETS, JobBody
from rota.api.problem import Flaw, Problem, bad_member
from rota.domain import job_template
from rota.domain.access import Scope
from rota.domain.job_template import BadValues
from rota.store import definition_reader as reader
from rota.store.port import View


class Content(msgspec.Struct, frozen=True, rename="camel"):
    """What a template stores."""

    job: dict[str, Any]
    parameters: dict[str, Any] = {}
    description: str = ""


decode = msgspec.json.Decoder(Content).decode


def filled(view: View, namespace: str, body: JobBody) -> tuple[JobBody, str]:
    """The body without its template, and the template's name and version as JSON.

    Members of the body besides name, app and parameters take the place of those in the template.
    """
    assert body.template is not None
    row = reader.template(view, namespace, body.template)
    if row is None:
        raise bad_member("/template", f"there is no template {body.template[:128]!r}")
    for name in (*TARGETS, *COMMAND_ONLY):
        if getattr(body, name) is not None:
            raise bad_member(f"/{name}", f"the template decides what runs the job: leave out {name}")
    stored = decode(row.content)
    try:
        made = job_template.filled(stored.parameters, stored.job, body.parameters or {})
    except BadValues as error:
        flaws = [Flaw("bad_field", words, pointer=f"/parameters{where}") for where, words in error.faults]
        raise Problem("bad_field", str(error), flaws=flaws) from None
    own = {
        name: value
        for name, value in msgspec.to_builtins(body).items()
        if value is not None and name not in ("template", "parameters")
    }
    whole = bodies.decoded(msgspec.json.encode({**made, **own}), JobBody)
    return whole, msgspec.json.encode({"name": row.name, "version": row.version}).decode()


def content(job: dict[str, Any], parameters: dict[str, Any] | None, description: str | None) -> dict[str, Any]:
    """What a template stores."""
    return {"job": job, "parameters": parameters or {}, "description": description or ""}


def check(job: dict[str, Any]) -> tuple[Scope, ...]:
    """Refuses members that a job does not have. Returns the scopes that its target needs."""
    given = [name for name in TARGETS if job.get(name) is not None]
    if len(given) != 1:
        raise bad_member("/job", f"the job of a template has one of {', '.join(TARGETS)}")
    if unknown := sorted(job.keys() - _MEMBERS):
        raise bad_member(f"/job/{unknown[0]}", f"a job has no member {unknown[0][:64]!r}", "unknown_field")
    return job_targets.scopes({"kind": given[0]})


_MEMBERS = set(NAMES.values()) - {"name", "template"}
