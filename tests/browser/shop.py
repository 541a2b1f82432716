"""An app with jobs of every kind that the dashboard shows, and with the troubles that its pages must explain.

The environment decides which code a worker has: `SHOP_RELEASE=2` is a deploy whose `charge` fails. A file `disk_full`
in the folder `SHOP_FOLDER` lets every new process for an isolated job fail, as on a machine without disk space.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from rota import App, Context, Exponential, Fixed
from rota.workflow import approve, text

RELEASE = int(os.environ.get("SHOP_RELEASE", "1"))
FOLDER = Path(os.environ.get("SHOP_FOLDER", "."))
LONG_NAME = "reconcile_the_ledger_of_every_subsidiary_with_the_statements_of_all_banks_nightly"
LONG_QUEUE = "statements_of_all_banks_of_every_subsidiary_that_are_reconciled_once_in_a_night"
LONG_WORKFLOW = "close_the_books_of_every_subsidiary_and_send_the_statements_to_all_of_their_auditors"
HOSTILE = "<script>window.hostile=1</script><img src=x onerror=window.hostile=1>"

log = logging.getLogger("shop")
app = App("shop")

if (FOLDER / "disk_full").exists():
    Path("/dev/full").write_bytes(bytes(65536))  # The real error of a full disk: OSError 28, No space left on device.


class GatewayError(Exception):
    """The payment provider does not answer."""


@app.job(
    queue="payments",
    priority="high",
    retry=Fixed(attempts=2 if RELEASE == 1 else 3, delay="1s"),
    timeout="30s",
)
def charge(ctx: Context, order: str, cents: int) -> str:
    """Takes the money for an order. The second release cannot reach the provider."""
    log.info("charging %s, %.2f EUR, fence %d", order, cents / 100, ctx.fence)
    if RELEASE == 2:
        log.warning("connection reset, giving up after 2.0 s")
        raise GatewayError(f"connection reset by peer (api.example:443), request req_{ctx.id[-8:]}")
    return f"receipt for {order}"


@app.job(queue="mail")
def send_email(to: str, template: str = "welcome") -> str:
    return f"{template} sent to {to}"


@app.job(queue="video", pool="video", start_within="2h", timeout="10m")
def render_video(product: str, preset: str = "1080p") -> str:
    """Needs a worker of the pool video."""
    return f"{product} in {preset}"


@app.job(every="3s", overlap="skip", queue="stock")
def sync_stock(ctx: Context) -> None:
    """Runs longer than its interval, so ticks overlap."""
    ctx.wait_cancelled(3600)


@app.job(cron="*/5 * * * *")
def expire_carts() -> int:
    return 3


@app.job(cron="0 4 * * 1-5", tz="Europe/Berlin", queue="reports")
def daily_report(day: str = "yesterday") -> str:
    return f"the report of {day}"


@app.job(isolation="process", pool="images", queue="images", retry=Fixed(attempts=2, delay="5s"))
def resize_image(photo: int, width: int = 640) -> str:
    return f"{photo} at {width}"


@app.job(queue="backups", timeout="4h")
def nightly_backup(ctx: Context, target: str = "s3://shop-backup") -> None:
    """Copies the database and the uploads to the backup bucket."""
    for table in range(1, 72):
        ctx.progress(table, 100, f"table {table}")
        log.info("copied table %d to %s", table, target)
    ctx.wait_cancelled(3600)


@app.job(queue="reports")
def many_lines(lines: int) -> int:
    """Prints as many lines as asked."""
    for number in range(1, lines + 1):
        print(f"line {number} of {lines}")
    return lines


@app.job(queue="reports")
def chatter(ctx: Context, lines: int) -> int:
    """Prints a line ten times a second, until it has printed all or is cancelled."""
    for number in range(1, lines + 1):
        print(f"word {number}", flush=True)
        if ctx.wait_cancelled(0.1):
            break
    return lines


@app.job(name=LONG_NAME, queue=LONG_QUEUE, retry=1)
def reconcile(note: str) -> None:
    raise ValueError(f"{note}: the sums differ by 12.03 EUR")


@app.job(queue="reports", retry=1)
def import_catalog(ctx: Context, file: str) -> None:
    print(HOSTILE)
    raise ValueError(f"row 1204 of {file}: price is not a number: {HOSTILE}")


@app.job
def extract(day: str) -> list[int]:
    return list(range(24))


@app.job(retry=Exponential(attempts=3, base="1s"))
def transform(ctx: Context, part: int) -> int:
    if part == 17:
        if ctx.attempt < 3:
            raise UnicodeDecodeError("utf-8", b"\xfc", 0, 1, "invalid start byte")
        ctx.wait_cancelled(3600)
    return part * 2


@app.job
def check(parts: list[int]) -> bool:
    return len(parts) == 24


@app.job
def load(rows: list[int], checked: bool) -> int:
    return sum(rows)


@app.job
def publish(total: int) -> str:
    return f"published {total}"


@app.workflow
def etl(day: str) -> str:
    parts = extract.step(day)
    rows = transform.options(at_once=4).map(parts)
    total = load.step(rows, check.step(parts))
    answer = approve.after(total)(text("Publish {day}?", day=day), who=["finance"], timeout="2d", required=True)
    return publish.after(answer).step(total)


@app.job
def build(version: str) -> str:
    return f"image:{version}"


@app.job
def deploy(image: str) -> str:
    return f"{image} is live"


@app.workflow
def release(version: str) -> str:
    image = build.step(version)
    answer = approve.after(image)(
        text("Release {v} to production?", v=version), who=["ops"], timeout="2d", required=True
    )
    return deploy.after(answer).step(image)


@app.workflow(name=LONG_WORKFLOW)
def close_books(version: str) -> str:
    return deploy.step(build.step(version))


@app.job(on="order.paid")
def send_receipt(order: dict[str, object]) -> str:
    return "sent"
