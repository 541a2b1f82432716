"""A program that a job of the HTTP API runs: counts the words of a text and prints a report.

    curl -X POST http://127.0.0.1:8080/api/v1/jobs -H 'Content-Type: application/json' \\
        -d '{"name": "daily-report", "schedule": "0 0 * * *", "command": "python generate_report.py"}'
"""

from __future__ import annotations

import os
import sys
from collections import Counter

TEXT = """A scheduler starts jobs at their time. A worker runs a job, and a job may start other jobs."""


def main() -> None:
    words = Counter(word.strip(".,").lower() for word in TEXT.split())
    print(f"report {os.environ.get('ROTA_EXECUTION_ID', 'by hand')} with Python {sys.version.split()[0]}")
    for word, count in words.most_common(3):
        print(f"{word}: {count}")


if __name__ == "__main__":
    main()
