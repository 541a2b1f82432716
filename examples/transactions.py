"""An account in the same PostgreSQL database: what is enqueued, and what is charged, is part of a transaction.

    ROTA_URL=postgresql://… python -m examples.transactions

It makes a table `example_account`, enqueues a charge in the transaction that opens an account, runs a worker, and shows
that the money was taken once, although the first attempt dies in the middle.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import psycopg

from rota import App, Context

URL = os.environ["ROTA_URL"]
app = App("accounts", url=URL)


@app.job
def charge(ctx: Context, name: str, cents: int) -> str:
    with ctx.transaction() as conn:
        conn.execute("UPDATE example_account SET cents = cents - %s WHERE name = %s", (cents, name))
        if ctx.fence == 1:
            os.kill(os.getpid(), signal.SIGKILL)  # The worker's process is gone, and so is what it did here.
        ctx.complete(conn, f"{name} paid {cents}")
    return f"{name} paid {cents}"


def main() -> None:
    with psycopg.connect(URL) as conn:
        conn.execute("DROP TABLE IF EXISTS example_account")
        conn.execute("CREATE TABLE example_account (name text PRIMARY KEY, cents bigint NOT NULL)")
        conn.execute("INSERT INTO example_account VALUES ('ann', 100)")
        x = charge.within(conn).enqueue("ann", 30)
        # Here both are committed: the account and the charge.
    worker = subprocess.Popen([sys.executable, "-m", "rota", "worker", "examples.transactions:app"])
    try:
        print(x.result(timeout=60))
        print([(attempt.fence, attempt.status) for attempt in x.attempts()])
    finally:
        worker.terminate()
        worker.wait()
    with psycopg.connect(URL) as conn:
        print(conn.execute("SELECT cents FROM example_account WHERE name = 'ann'").fetchone())
    app.close()


if __name__ == "__main__":
    main()
