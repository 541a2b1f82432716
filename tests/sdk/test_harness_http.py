"""HTTP jobs in the harness: the test gives the answers, and nothing is sent."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from rota import App, DefinitionError, Status
from rota.testing import harness

URL = "https://example.com/orders"


@pytest.fixture
def app() -> App:
    app = App("hooks", url="sqlite://:memory:")
    app.http("order", URL + "/{order}?dry=1", result="json", retry=3)
    return app


def test_a_function_answers(app: App) -> None:
    codes = iter([503, 200])

    async def answer(request: httpx.Request) -> httpx.Response:
        assert (request.method, str(request.url)) == ("POST", f"{URL}/7?dry=1")
        assert request.headers["X-Rota-Job"] == "order"
        return httpx.Response(next(codes), json={"order": 7}, headers={"Retry-After": "60"})

    with harness(app, http=answer) as rota:
        x = app.jobs["order"].enqueue(order=7)
        rota.run_until_idle()
        assert x.status() == Status.RETRYING
        rota.advance("1m")
        assert (x.result(), len(x.attempts())) == ({"order": 7}, 2)


def test_a_mapping_answers(app: App) -> None:
    listed: dict[str, httpx.Response | int] = {f"{URL}/7": httpx.Response(200, json="seven"), f"{URL}/8?dry=1": 404}
    with harness(app, http=listed) as rota:
        seven, eight = (app.jobs["order"].enqueue(order=number) for number in (7, 8))
        rota.run_until_idle()
        assert (seven.result(), eight.status()) == ("seven", Status.FAILED)


@pytest.mark.parametrize(
    ("raised", "kind"),
    [(httpx.ConnectError("down"), "HttpConnection"), (httpx.ReadTimeout("late"), "HttpTimeout")],
    ids=["connection", "timeout"],
)
def test_a_request_without_an_answer_is_retried(app: App, raised: Exception, kind: str) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise raised

    with harness(app, http=answer) as rota:
        x = app.jobs["order"].enqueue(order=7)
        rota.run_until_idle()
        assert x.status() == Status.RETRYING
        assert kind in (x.attempts()[0].error_message or "")


@pytest.mark.parametrize(
    ("http", "message"),
    [
        (None, r"sends POST https://example.com/orders/7\?dry=1, and a harness sends nothing: give it the answers"),
        ({URL: 200}, "http= has no answer to POST https://example.com/orders/7"),
        (lambda request: "fine", "must be an httpx.Response, not 'fine'"),
    ],
    ids=["none", "unlisted", "no response"],
)
def test_a_missing_answer_fails_the_test_and_not_the_job(app: App, http: Any, message: str) -> None:
    with harness(app, http=http) as rota:
        app.jobs["order"].enqueue(order=7)
        with pytest.raises(AssertionError, match=message):
            rota.run_until_idle()


def test_answers_of_another_kind_are_refused(app: App) -> None:
    refused = pytest.raises(DefinitionError, match="http= takes a function")
    with refused, harness(app, http=200):  # type: ignore[arg-type]
        pass
