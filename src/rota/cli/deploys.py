"""`rota deploys`: list the sets of declarations that workers of an app have, and put one in force."""

from __future__ import annotations

import click

from rota.cli import output, text
from rota.cli.database import Database, with_database
from rota.cli.options import app_option, json_option, list_group
from rota.ops import deploy as ops
from rota.views import deploy as views

SHOWN_DIGEST = 10


@list_group
@app_option
@json_option
@with_database
def deploys(database: Database, app: str | None, as_json: bool) -> None:
    """List deploys of each app, by precedence; put one in force.

    A deploy is the set of jobs, queues and schedules that the code of an app declares. Of the deploys with live workers
    the first one is in force: the database has its schedules and job versions.

    \b
    rota deploys
    rota deploys use shop 3
    """
    found = [one for one in database.read(views.deploys, database.namespace) if app in (None, one.app)]
    empty = "no worker has declared anything yet: start one with `rota worker MODULE:APP`"
    spare = ("digest", "first seen", "schedules", "jobs")
    output.listing(found, _COLUMNS, as_json=as_json, empty=text.none_of(app, "deploys", empty), spare=spare)


@deploys.command()
@click.argument("app")
@click.argument("number", type=int)
@with_database
def use(database: Database, app: str, number: int) -> None:
    """Give a deploy precedence over all others of its app.

    It is in force at once if a live worker has it, and otherwise as soon as one starts with it. A deploy that the
    database has not seen before has precedence over it again.

    \b
    rota deploys use shop 3
    """
    lease_s = database.settings.lease_s
    if database.transact(ops.use, database.namespace, app, number, lease_s, database.actor):
        output.message(f"deploy {number} of app {app} is in force")
    else:
        output.message(
            f"deploy {number} of app {app} is in force as soon as a worker starts with it: no live worker has it"
        )


_COLUMNS: output.Columns[views.Deploy] = {
    "app": lambda one: one.app,
    "deploy": lambda one: one.deploy,
    "in force": lambda one: "yes" if one.is_in_force else "",
    "workers": lambda one: one.workers,
    "jobs": lambda one: one.jobs,
    "schedules": lambda one: one.schedules,
    "first seen": lambda one: one.first_seen_at,
    "last started": lambda one: one.last_started_at,
    "digest": lambda one: one.digest[:SHOWN_DIGEST],
}
