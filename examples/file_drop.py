"""A folder into which other programs put files of sales. Each file is parsed and loaded, and a summary follows.

    ROTA_DROP=/tmp/drop rota dev examples.file_drop:app

In a second terminal: `printf 'shop,amount\nberlin,5\noslo,7\n' > /tmp/drop/monday.csv`, and a few seconds later
`rota events`, `rota events show ID`.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import TypedDict

from rota import App, FailForGood
from rota.workflow import chain

DROP = os.environ.get("ROTA_DROP", "/tmp/drop")

app = App("sales")
app.watch(DROP, "sales.dropped", pattern="*.csv", settle="2s")


class File(TypedDict):
    path: str
    name: str


class Sale(TypedDict):
    shop: str
    amount: int


@app.job
def parse(file: File) -> list[Sale]:
    with Path(file["path"]).open(newline="") as lines:
        try:
            return [Sale(shop=row["shop"], amount=int(row["amount"])) for row in csv.DictReader(lines)]
        except (KeyError, ValueError) as error:
            raise FailForGood(f"{file['name']} is no list of sales: {error!r}") from error


@app.job
def load(sales: list[Sale], name: str) -> int:
    total = sum(sale["amount"] for sale in sales)
    app.emit("sales.loaded", {"name": name, "total": total}, key=name)
    return total


@app.job
def tidy(path: str) -> None:
    """Moves the file out of the folder."""
    done = Path(path).parent / "done"
    done.mkdir(exist_ok=True)
    Path(path).rename(done / Path(path).name)


@app.workflow(on="sales.dropped")
def drop(file: File) -> int:
    sales = parse.step(file)
    total = load.step(sales, file["name"])
    chain(total, tidy.step(file["path"]))
    return total


@app.job(on="sales.loaded", where={"total": {"gt": 0}}, debounce="1m")
def summarize() -> str:
    return "a summary of all sales"
