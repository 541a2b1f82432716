"""The program of a process that runs jobs with `isolation="process"`: not for people, a worker starts it."""

from __future__ import annotations

import argparse
import faulthandler
import logging
import os
import socket
import sys

from rota.cli.loading import agree, load_app
from rota.domain import payload
from rota.domain.errors import RotaError
from rota.executors import frames
from rota.executors.body import Body
from rota.executors.frames import Ready
from rota.executors.function import FunctionTarget


def main() -> None:
    """Loads the app, says so, and serves."""
    parser = argparse.ArgumentParser()
    parser.add_argument("app")
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--url")
    parser.add_argument("--namespace")
    parser.add_argument("--log-level", default="INFO")
    arguments = parser.parse_args()
    os.set_inheritable(arguments.fd, False)  # What a job starts must not keep our end open after we are gone.
    end = socket.socket(fileno=arguments.fd)
    faulthandler.enable()  # A crash tells where, in the last lines of the attempt's log.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    logging.basicConfig(level=arguments.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for name in ("url", "namespace"):
        if value := getattr(arguments, name):
            os.environ[f"ROTA_{name.upper()}"] = value
    try:
        app = load_app(arguments.app)
        agree(app, arguments.url, arguments.namespace)
    except (RotaError, OSError) as error:
        frames.send(end, Ready(payload.clean(str(error))))
        os._exit(1)
    found = {name: target for name, target in app.targets().items() if isinstance(target, FunctionTarget)}
    body = Body(end, found)
    body.greet()
    code = body.serve()
    app.close()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
