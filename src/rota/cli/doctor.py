"""`rota doctor`: checks settings, database, clocks, workers and queues."""

from __future__ import annotations

import click

from rota.cli import doctor_checks, doctor_checks_sqlite, layout, output
from rota.cli.database import Database, with_database
from rota.cli.doctor_checks import Check, Finding, Verdict
from rota.cli.failure import UNSUCCESSFUL
from rota.cli.options import json_option
from rota.domain.errors import RotaError
from rota.store.postgres.url import is_postgres


@click.command()
@json_option
@with_database
def doctor(database: Database, as_json: bool) -> None:
    """Check settings, database, clock, workers and queues.

    Each finding is ok, warn or fail, and says after → what to do. The exit code is 1 if anything fails.

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
        wide = max(len(one.check) for one in findings) + 2
        for one in findings:
            layout.paragraph({one.verdict.value: 6, one.check: wide}, one.found)
            if one.advice:
                layout.paragraph({"": 6 + wide}, f"→ {one.advice}")
    if any(one.verdict is Verdict.FAIL for one in findings):
        click.get_current_context().exit(UNSUCCESSFUL)


def _examined(database: Database) -> list[Finding]:
    """The findings of all checks, up to the first check that raises: the checks after it could not work."""
    findings: list[Finding] = []
    for check in _checks(database):
        try:
            findings += check(database)
        except (RotaError, OSError) as error:
            advice = "fix this first; the rest was not checked"
            return [*findings, Finding(Verdict.FAIL, str(error), advice, check.name)]
    return findings


def _checks(database: Database) -> list[Check]:
    """In order: the most basic first."""
    try:
        is_server = is_postgres(database.settings.url)
    except RotaError:
        return [doctor_checks.settings]  # It raises the same error.
    if is_server:
        from rota.cli import doctor_checks_postgres  # lazy: psycopg need not be loaded for SQLite

        return [doctor_checks.settings, *doctor_checks_postgres.CHECKS, *doctor_checks.CHECKS]
    return [doctor_checks.settings, *doctor_checks_sqlite.CHECKS, *doctor_checks.CHECKS]
