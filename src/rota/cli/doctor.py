"""`rota doctor`: is everything as it should be?"""

from __future__ import annotations

from collections.abc import Callable

import click

from rota.cli import checks, output
from rota.cli.checks import Finding, Verdict
from rota.cli.database import Database, with_database
from rota.cli.failure import NOT_WELL
from rota.cli.params import json_option
from rota.domain.errors import RotaError


@click.command()
@json_option
@with_database
def doctor(database: Database, as_json: bool) -> None:
    """Check settings, database, clock, workers and queues.

    Each line is ok, warn or fail, and says what to do. The exit code is 1 if anything fails.

    \b
    rota doctor --json
    """
    findings = _examined(database)
    if as_json:
        output.print_json_rows(
            {"check": one.check, "verdict": one.verdict.value, "found": one.found, "advice": one.advice or None}
            for one in findings
        )
    else:
        rows = [[one.verdict.value, one.check, one.found, one.advice] for one in findings]
        output.table(["", "check", "found", "what to do"], rows)
    if any(one.verdict is Verdict.FAIL for one in findings):
        click.get_current_context().exit(NOT_WELL)


def _examined(database: Database) -> list[Finding]:
    """Every check in order; what cannot be asked because something before it failed is left out."""
    findings: list[Finding] = []
    for group in _groups(database):
        try:
            findings += group(database)
        except (RotaError, OSError) as error:
            name = group.__name__.replace("_", " ")
            return [*findings, Finding(name, Verdict.FAIL, str(error), "fix this first; the rest was not checked")]
    return findings


def _groups(database: Database) -> list[Callable[[Database], list[Finding]]]:
    """What to look at, in order: the most basic first."""
    from rota.cli import checks_postgres, checks_sqlite
    from rota.store.postgres import url as postgres_url

    try:
        is_postgres = postgres_url.is_postgres(database.settings.url)
    except RotaError:
        is_postgres = False  # The settings cannot be read, as the first check will say.
    below = checks_postgres.GROUPS if is_postgres else (checks_sqlite.database,)
    above = (checks.clock, checks.workers, checks.deploys, checks.queues, checks.dead_letters, checks.retention)
    return [checks.settings, *below, checks.schema, *above]
