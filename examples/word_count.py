"""Counts the words of all text files in a folder: one step for each file, side by side, and one that adds them up.

    rota dev examples.word_count:app

In a second terminal: `rota start word_count folder=docs --wait`.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from rota import App

app = App("words")


@app.job
def files(folder: str) -> list[str]:
    return sorted(str(path) for path in Path(folder).iterdir() if path.suffix in {".md", ".txt"})


@app.job
def count(file: str) -> dict[str, int]:
    return Counter(Path(file).read_text().lower().split())


@app.job
def merge(counts: list[dict[str, int]]) -> dict[str, int]:
    return sum(map(Counter, counts), Counter[str]())


@app.workflow
def word_count(folder: str) -> dict[str, int]:
    return merge.step(count.map(files.step(folder)))
