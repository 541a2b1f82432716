"""Row gate: adds the definition to executions of jobs as data. Lets every execution start.

A worker has its own jobs by name. An execution of any other job was claimed because the worker can run it from its
definition: a command, a request, or one of the worker's functions under another name.
"""

from __future__ import annotations

from msgspec.structs import replace

from rota.domain.claim import Claim
from rota.ops.gates.claim_state import Claiming


def definitions(claiming: Claiming, taken: list[Claim]) -> list[Claim]:
    known = frozenset(claiming.served.jobs)
    ids = [claim.id for claim in taken if claim.job not in known]
    if not ids:
        return taken
    rows = claiming.tx.rows("rules_at_acceptance", ids=ids, lowest=min(ids), highest=max(ids))
    found: dict[str, str] = {id: definition for id, definition, _ in rows}
    return [replace(claim, definition=found.get(claim.id)) for claim in taken]
