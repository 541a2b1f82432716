"""A saga: book a flight and a hotel, then charge. If the payment fails, both bookings are undone.

    rota dev examples.trip:app

In a second terminal: `rota start trip name=Ada budget=500 --wait` succeeds, and with `budget=100` it fails. Then
`rota run show ID` shows what was undone.
"""

from __future__ import annotations

from dataclasses import dataclass

from rota import App, FailForGood

app = App("travel")
booked: dict[str, int] = {}
"""The bookings of the airline and the hotel, by number. In a real program their services would store them."""


@dataclass
class Booking:
    number: str
    price: int


def book(number: str, price: int) -> Booking:
    """A second call with the same number changes nothing: a job may run twice if its worker dies."""
    booked[number] = price
    return Booking(number, price)


@app.job
def book_flight(name: str) -> Booking:
    return book(f"flight of {name}", 210)


@app.job
def cancel_flight(flight: Booking) -> None:
    booked.pop(flight.number, None)


@app.job
def book_hotel(name: str) -> Booking:
    return book(f"hotel of {name}", 180)


@app.job
def cancel_hotel(hotel: Booking | None) -> None:
    """`hotel` is None if `book_hotel` did not succeed. A real job would then ask the service for a booking."""
    if hotel is not None:
        booked.pop(hotel.number, None)


@app.job
def charge(budget: int, flight: int, hotel: int) -> str:
    if flight + hotel > budget:
        raise FailForGood(f"{flight + hotel} is more than {budget}")
    return f"paid {flight + hotel}"


@app.workflow
def trip(name: str, budget: int) -> str:
    flight = book_flight.options(undo=cancel_flight).step(name)
    hotel = book_hotel.options(undo=cancel_hotel, undo_failed=True).step(name)
    return charge.step(budget, flight.price, hotel.price)
