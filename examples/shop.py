"""A shop: the app that `make run` starts. The README says what to type in a second terminal.

Nothing here talks to the outside world. What a real shop would call is pretended, in ways that fail on purpose and
the same way every time, so that retries, snoozes and dead letters can be watched.
"""

from __future__ import annotations

import asyncio
import logging
import threading

from rota import App, Context, Exponential, Fixed, RetryIn, Snooze, Unique

log = logging.getLogger("shop")

app = App("shop")
app.queue("thumbnails", policy="fifo", max_depth=100_000)
app.queue("gifts", max_depth=5)  # The bench has room for five: the sixth enqueue is refused, with a time to retry.


# --- Mail: a retry policy -------------------------------------------------------------------------


class MailRefused(Exception):
    """The mail server does not want this message now."""


@app.job(queue="mail", retry=Exponential(attempts=5, base="4s", cap="1m"), timeout="30s")
def email(ctx: Context, to: str, template: str = "welcome") -> str:
    """Sends one message; greylist.example refuses it twice."""
    if to.endswith("@greylist.example") and ctx.attempt <= 2:
        raise MailRefused(f"451 {to}: greylisted, try again later")
    return f"{template} sent to {to}"


# --- Payments: an idempotency key, a fence, a permanent error -------------------------------------


class CardDeclined(Exception):
    """The bank said no; asking again would not help."""


class GatewayBusy(Exception):
    """The gateway wants to be left alone for a while."""


class StaleFence(Exception):
    """A newer attempt has been here: this one is no longer in charge."""


class Gateway:
    """Stands for a payment provider that takes every request once and refuses a fence older than one it has seen."""

    def __init__(self) -> None:
        self.charged: dict[str, int] = {}
        self._fences: dict[str, int] = {}
        self._lock = threading.Lock()

    def charge(self, request: str, fence: int, card: str, cents: int) -> str:
        with self._lock:
            if fence < self._fences.get(request, 0):
                raise StaleFence(f"request {request} was last seen with fence {self._fences[request]}, not {fence}")
            self._fences[request] = fence
            if card.startswith("4000"):
                raise CardDeclined(f"card {card} was declined")
            if card.startswith("5000") and fence == 1:
                raise GatewayBusy("503 Retry-After: 3")
            self.charged.setdefault(request, cents)
            return f"receipt {len(self.charged)}"


gateway = Gateway()


@app.job(queue="payments", priority="high", retry=Exponential(attempts=8, never=(CardDeclined,)), timeout="1m")
def charge(ctx: Context, order: str, card: str, cents: int) -> str:
    """Takes the money for an order, see `place_order`."""
    # The execution's id is the same in every attempt, so the gateway can tell a repetition from a new payment; the
    # fence grows with every start, so it can refuse an attempt that was given up but still runs somewhere.
    try:
        receipt = gateway.charge(ctx.id, ctx.fence, card, cents)
    except GatewayBusy as error:
        raise RetryIn("3s", str(error)) from error
    # Should this attempt be repeated after this line, the key keeps the second message out.
    email.options(key=f"receipt-{order}").enqueue(f"{order}@customers.example", template="receipt")
    return receipt


def place_order(order: str, card: str, cents: int) -> str:
    """What the shop's web page would call: pressed twice, the button still makes one payment. Returns its id."""
    return charge.options(key=f"charge-{order}").enqueue(order, card, cents).id


# --- Long work that stops when it is asked to -----------------------------------------------------


@app.job(queue="reports", priority="low", retry=2, timeout="5m")
async def report(year: int, seconds_per_month: float = 1.0) -> dict[str, int]:
    """Adds up a year, slowly."""
    totals: dict[str, int] = {}
    try:
        for month in range(1, 13):
            await asyncio.sleep(seconds_per_month)  # A real report would wait for its database here.
            totals[f"{year}-{month:02}"] = month * 1000
    except asyncio.CancelledError:
        # This is how a cancel, a timeout or a drain arrives. Clean up, and let it pass.
        log.info("report on %d stopped after %d months", year, len(totals))
        raise
    return totals


class StocktakeStopped(Exception):
    """The count was broken off."""


@app.job(queue="reports", retry=Fixed(attempts=2, delay="10s"), timeout="5m", total_timeout="15m")
def stocktake(ctx: Context, shelves: int = 40, seconds_per_shelf: float = 0.5) -> int:
    """Counts shelf by shelf."""
    for shelf in range(shelves):
        # A thread cannot be cancelled from outside: a sync job has to look, and to raise.
        if ctx.wait_cancelled(seconds_per_shelf):
            raise StocktakeStopped(f"stopped after {shelf} of {shelves} shelves")
    return shelves * 12


# --- Bulk, back-pressure --------------------------------------------------------------------------


@app.job(queue="thumbnails", retry=3, timeout="10s")
async def thumbnail(photo: int, width: int = 320) -> str:
    """Makes one small picture."""
    await asyncio.sleep(0)
    return f"photo-{photo}-{width}.webp"


@app.job
async def import_photos(count: int = 1000) -> int:
    """Enqueues a thumbnail for each new photo."""
    return len(await thumbnail.aenqueue_many({"photo": number} for number in range(count)))


@app.job(queue="gifts", priority="low")
def wrap(order: str) -> str:
    """Wraps a gift."""
    return f"{order} is wrapped"


# --- Clean-up that runs once, after the last change -----------------------------------------------


@app.job
def tidy_basket(basket: str) -> str:
    """Throws away what was left in a basket."""
    return f"{basket} is tidy"


def basket_changed(basket: str, quiet: str = "10s") -> str:
    """Asks for a tidy-up once the basket has been left alone for a while: every change pushes it back."""
    once = Unique(key=basket, scope="queued", on_conflict="debounce")
    return tidy_basket.options(delay=quiet, unique=once).enqueue(basket).id


# --- Waiting for another step ---------------------------------------------------------------------


@app.job(queue="shipping")
def ship(ctx: Context, order: str) -> str:
    """Hands over a parcel; snoozes until it is packed."""
    if ctx.fence < 3:  # The warehouse needs a while. A snooze burns no attempt.
        raise Snooze("3s", f"{order} is not packed yet")
    return f"{order} is on its way"


@app.job(queue="mail", priority="low", start_within="1h")
def newsletter(issue: int) -> str:
    """Late news is useless: skipped after an hour."""
    return f"issue {issue} is out"


# --- Everything at once ---------------------------------------------------------------------------


@app.job
def busy_day(customers: int = 20) -> str:
    """A day at the shop: enqueues some of everything."""
    import_photos.enqueue(12)
    for number in range(customers):
        domain = "greylist.example" if number % 5 == 4 else "customers.example"
        email.enqueue(f"customer{number}@{domain}")
        # A busy gateway, a declined card, and cards that work.
        card = {3: "5000-0000", 7: "4000-0000"}.get(number % 10, "4242-4242")
        place_order(f"order-{number}", card, 1000 + number)
        basket_changed(f"basket-{number % 3}")
    ship.enqueue("order-1")
    newsletter.enqueue(1)
    stocktake.enqueue()
    report.options(delay="5s").enqueue(2026)
    return f"{customers} customers came"
