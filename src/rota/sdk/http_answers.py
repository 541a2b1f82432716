"""Answers the requests of HTTP jobs in a test, in place of the network."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from rota.domain.errors import DefinitionError

if TYPE_CHECKING:
    import httpx

    Handler = Callable[[httpx.Request], httpx.Response | Awaitable[httpx.Response]]
    Http = Handler | Mapping[str, httpx.Response | int]
    Answers = Callable[[httpx.Request], Awaitable[httpx.Response]]


def answers(http: Http | None) -> Answers:
    """The `http=` of a harness as one async function. An AssertionError that it raises fails the test, not the job."""
    if http is not None and not callable(http) and not isinstance(http, Mapping):
        raise DefinitionError(
            "http= takes a function from httpx.Request to httpx.Response, or a mapping from URLs to responses or "
            f"status codes, not {http!r}"
        )

    async def answer(request: httpx.Request) -> httpx.Response:
        import httpx  # lazy: an extra

        try:
            found = _listed(http, request) if http is None or isinstance(http, Mapping) else http(request)
            response = await found if inspect.isawaitable(found) else found
        except httpx.TimeoutException as error:
            raise TimeoutError(str(error)) from None
        except httpx.TransportError as error:
            raise ConnectionError(str(error)) from None
        if not isinstance(response, httpx.Response):
            raise AssertionError(f"the answer to {_named(request)} must be an httpx.Response, not {response!r}")
        return response

    return answer


def _listed(listed: Mapping[str, httpx.Response | int] | None, request: httpx.Request) -> httpx.Response:
    import httpx  # lazy: an extra

    if listed is None:
        raise AssertionError(
            f"a job sends {_named(request)}, and a harness sends nothing: give it the answers, such as "
            "harness(app, http=lambda request: httpx.Response(200))"
        )
    found = listed.get(str(request.url), listed.get(str(request.url.copy_with(query=None))))
    if found is None:
        raise AssertionError(f"http= has no answer to {_named(request)}: it has {', '.join(listed) or 'none'}")
    return httpx.Response(found) if isinstance(found, int) else found


def _named(request: httpx.Request) -> str:
    return f"{request.method} {request.url}"
