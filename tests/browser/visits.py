"""Every page of the dashboard, with the dialogs that one click opens. Tests and screenshots visit them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from playwright.sync_api import Page

from tests.browser import shop as code
from tests.browser.site import Shop

IS_SHOWN = """() => document.querySelector('h1')?.textContent
  && !document.querySelector('[role=status][aria-label=Loading]')
  && (location.pathname !== '/' || document.querySelectorAll('.uplot').length === 4 || !document.querySelector('table'))
"""
"""The page has its title, nothing in it is loading, and the Overview has drawn its charts."""


@dataclass(frozen=True)
class Visit:
    """`path` may name what `found` finds; `click` is the name of a button, `press` a key."""

    name: str
    path: str
    click: str | None = None
    press: str | None = None

    def open(self, page: Page, url: str, ids: dict[str, str]) -> None:
        page.goto(url + self.path.format_map(ids))
        page.wait_for_function(IS_SHOWN)
        if self.click is not None:
            page.get_by_role("button", name=self.click, exact=True).locator("visible=true").first.click()
        if self.press is not None:
            page.keyboard.press(self.press)
        if self.click is not None or self.press is not None:
            page.get_by_role("dialog").wait_for()
            page.wait_for_function(IS_SHOWN)


EMPTY = (
    Visit("overview", "/"),
    Visit("alerts", "/alerts"),
    Visit("executions", "/executions"),
    Visit("runs", "/runs"),
    Visit("dead-letters", "/dead"),
    Visit("jobs", "/jobs"),
    Visit("schedules", "/schedules"),
    Visit("events", "/events"),
    Visit("queues", "/queues"),
    Visit("workers", "/workers"),
    Visit("settings", "/settings"),
    Visit("settings-tokens", "/settings/tokens"),
    Visit("settings-namespaces", "/settings/namespaces"),
    Visit("settings-audit", "/settings/audit"),
    Visit("sign-in", "/sign-in"),
)
"""The pages that an empty system has, too."""

OF_THE_SHOP = (
    Visit("overview-all-changes", "/?changes=all"),
    Visit("alerts-start-a-worker", "/alerts", click="Start a worker…"),
    Visit("execution-failed", "/executions/{failed}"),
    Visit("execution-not-running", "/executions/{queued}"),
    Visit("execution-running", "/executions/{running}"),
    Visit("execution-success", "/executions/{success}"),
    Visit("execution-scheduled", "/executions/{scheduled}"),
    Visit("execution-long-name", "/executions/{long}"),
    Visit("execution-cancel", "/executions/{queued}", click="Cancel…"),
    Visit("execution-unknown", "/executions/01a1e2"),
    Visit("run", "/runs/{etl}"),
    Visit("run-map", "/runs/{etl}?step=transform"),
    Visit("run-approval", "/runs/{release}"),
    Visit("run-long-name", "/runs/{long_run}"),
    Visit("run-pause", "/runs/{etl}", click="Pause run…"),
    Visit("dead-letters-group", "/dead?group={group}"),
    Visit("dead-letters-replay", "/dead", click="Replay…"),
    Visit("job", "/jobs/shop/charge"),
    Visit("job-executions", "/jobs/shop/charge?tab=executions"),
    Visit("job-schedule", "/jobs/shop/sync_stock?tab=schedule"),
    Visit("job-depends-on", "/jobs/shop/charge?tab=depends"),
    Visit("job-definition", "/jobs/shop/charge?tab=definition"),
    Visit("job-changes", "/jobs/shop/charge?tab=changes"),
    Visit("job-run", "/jobs/shop/charge", click="Run…"),
    Visit("job-long-name", "/jobs/shop/{long_name}"),
    Visit("schedules-ledger", "/schedules?of=sync_stock"),
    Visit("schedules-week", "/schedules?view=week"),
    Visit("schedules-list", "/schedules?view=list"),
    Visit("schedules-new", "/schedules", click="New schedule…"),
    Visit("event", "/events/{event}"),
    Visit("queue", "/queues/mail"),
    Visit("queue-busy", "/queues/payments"),
    Visit("queue-pause", "/queues/payments", click="Pause…"),
    Visit("queue-settings", "/queues/payments", click="Change…"),
    Visit("queue-long-name", "/queues/{long_queue}"),
    Visit("queue-unknown", "/queues/nowhere"),
    Visit("worker", "/workers/{worker}"),
    Visit("worker-trouble", "/workers/{troubled}"),
    Visit("worker-stopped", "/workers/{stopped}"),
    Visit("worker-drain", "/workers/{worker}", click="Drain…"),
    Visit("settings-namespace-change", "/settings/namespaces", click="Change…"),
    Visit("not-found", "/nowhere"),
    Visit("palette", "/events", press="Control+k"),
    Visit("keys", "/events", press="?"),
)

EVERY = EMPTY + OF_THE_SHOP


def found(site: Shop) -> dict[str, str]:
    """What the paths name."""
    live = site.ask("/workers")["items"]
    return {
        "failed": _execution(site, job="charge", status="failed"),
        "queued": _execution(site, job="render_video", status="queued"),
        "running": _execution(site, job="nightly_backup", status="running"),
        "success": _execution(site, job="charge", status="success"),
        "scheduled": _execution(site, job="send_email", status="scheduled"),
        "long": _execution(site, job=code.LONG_NAME),
        "etl": _run(site, "etl"),
        "release": _run(site, "release"),
        "long_run": _run(site, code.LONG_WORKFLOW),
        "group": str(site.ask("/errors", limit=1)["items"][0]["fingerprint"]),
        "event": str(site.ask("/events", limit=1)["items"][0]["eventId"]),
        "worker": _worker(one for one in live if not one["trouble"]),
        "troubled": _worker(one for one in live if one["trouble"]),
        "stopped": _worker(one for one in site.ask("/workers", since="1h")["items"] if one["stoppedAt"]),
        "long_name": code.LONG_NAME,
        "long_queue": code.LONG_QUEUE,
    }


def _execution(site: Shop, **query: Any) -> str:
    return str(site.ask("/executions", limit=1, **query)["items"][0]["executionId"])


def _run(site: Shop, workflow: str) -> str:
    return str(site.ask("/runs", workflow=workflow, limit=1)["items"][0]["runId"])


def _worker(among: Any) -> str:
    return quote(str(next(iter(among))["workerId"]))
