"""`rota migrate`: brings the database's schema up to date."""

from __future__ import annotations

import click

from rota.cli import output, text
from rota.cli.database import Database, with_database
from rota.store import opening
from rota.store.opening import open_store


@click.command()
@click.option("--dry-run", is_flag=True, help="Print the SQL that would run, and change nothing.")
@with_database
def migrate(database: Database, dry_run: bool) -> None:
    """Create the database or bring it up to date.

    Workers and programs migrate by themselves when they start; other commands never do.

    \b
    rota migrate --dry-run
    """
    url = database.settings.url
    behind = opening.pending(url)
    if not behind:
        output.message(f"{opening.place_of(url)} is up to date")
        return
    if dry_run:
        for migration in behind:
            print(f"-- {migration.name}\n{migration.text.rstrip()}\n")
        return
    output.message(f"applying {text.count(len(behind), 'migration')} to {opening.place_of(url)}")
    open_store(url, database.clock, busy_s=database.settings.busy_s).close()
    for migration in behind:
        print(migration.name)
