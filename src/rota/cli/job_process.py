"""The program of a process that runs jobs with `isolation="process"`. Only workers start it."""

from __future__ import annotations

import faulthandler
import logging
import os
import sys

from rota.cli.apps import load_for_worker, process_arguments
from rota.cli.text import LOG_FORMAT
from rota.domain import payload
from rota.domain.errors import RotaError
from rota.engine.tether import die_with
from rota.executors.process import connection
from rota.executors.process.connection import Ready
from rota.executors.process.exit_process import exit_in_order
from rota.executors.process.job_process import JobProcess
from rota.executors.process.meter import Meter
from rota.executors.process.protect_secrets import hide


def main() -> None:
    """Loads the app, reports that it is ready, and runs jobs until the worker closes the connection."""
    arguments = process_arguments().parse_args()
    end = connection.take_connection()  # First, so that it has descriptor 3.
    die_with(os.getppid())
    meter = Meter()
    hide()
    faulthandler.enable()  # The stack of a crash is in the last lines of the attempt's log.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    logging.basicConfig(level=arguments.log_level, format=LOG_FORMAT)
    try:
        app = load_for_worker(arguments)
    except (RotaError, OSError) as error:
        connection.send(end, Ready(payload.clean(str(error))))
        exit_in_order(1)
    process = JobProcess(end, app.functions(), meter)
    process.send_ready()
    code = process.serve()
    app.close()
    exit_in_order(code)


if __name__ == "__main__":
    main()
