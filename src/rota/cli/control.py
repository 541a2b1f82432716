"""`rota cancel` and `rota retry`: what people do to executions, one by one."""

from __future__ import annotations

import click

from rota.cli import output
from rota.cli.database import Database, with_database
from rota.cli.failure import NOT_WELL
from rota.cli.params import json_option
from rota.domain.status import Status


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
@json_option
@with_database
def cancel(database: Database, ids: tuple[str, ...], as_json: bool) -> None:
    """Cancel executions; a running one is asked to stop.

    Prints each id and its status afterwards. The exit code is 1 if one of them had already ended otherwise.

    \b
    rota cancel 0197a3c2 0197a3c3
    """
    from rota.ops import control
    from rota.views import lookup
    from rota.views.execution import ExecutionStatus

    found = database.read(lookup.execution_ids, database.namespace, ids)
    led_to = {id: database.transact(control.cancel, database.namespace, id, database.actor) for id in found}
    if as_json:
        output.print_json_rows(ExecutionStatus(execution_id=id, status=status) for id, status in led_to.items())
    else:
        print("\n".join(f"{id}  {status}" for id, status in led_to.items()))
    for id, status in led_to.items():
        if status is Status.RUNNING:
            output.message(f"{id} was asked to stop")
        elif status is not Status.CANCELLED:
            output.message(f"{id} had already ended: {status}")
    if any(status not in (Status.RUNNING, Status.CANCELLED) for status in led_to.values()):
        click.get_current_context().exit(NOT_WELL)


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
@json_option
@with_database
def retry(database: Database, ids: tuple[str, ...], as_json: bool) -> None:
    """Run ended executions again, each as a new execution.

    Prints the id of each new execution, which is linked to the old one. A dead letter is no longer one afterwards.

    \b
    rota retry 0197a3c2
    """
    from rota.ids import IdSource
    from rota.ops import control
    from rota.views import execution, lookup

    found = database.read(lookup.execution_ids, database.namespace, ids)
    database.read(execution.check_ended, database.namespace, found)
    source = IdSource(database.clock)
    made = [
        (database.transact(control.repeat, database.namespace, id, source.new(), database.actor), id) for id in found
    ]
    if as_json:
        output.print_json_rows(execution.Replayed(execution_id=new, replay_of=old) for new, old in made)
    else:
        print("\n".join(new for new, _ in made))
