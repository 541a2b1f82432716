"""Extract, three transforms side by side, load: the tutorial of Airflow's TaskFlow as a Rota workflow.

    rota dev examples.etl:app

In a second terminal: `rota start etl --wait`, `rota graph examples.etl:app etl`.
"""

from __future__ import annotations

from rota import App

app = App("orders")


@app.job
def extract() -> dict[str, float]:
    return {"A-17": 120.0, "A-18": 80.5, "A-19": 310.25}


@app.job
def total(orders: dict[str, float]) -> float:
    return sum(orders.values())


@app.job
def largest(orders: dict[str, float]) -> str:
    return max(orders, key=lambda order: orders[order])


@app.job
def mean(orders: dict[str, float]) -> float:
    return sum(orders.values()) / len(orders)


@app.job
def load(total: float, largest: str, mean: float) -> str:
    return f"{total:.2f} in all, {mean:.2f} on average, most by {largest}"


@app.workflow
def etl() -> str:
    orders = extract.step()
    return load.step(total.step(orders), largest.step(orders), mean.step(orders))
