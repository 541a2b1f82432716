"""The page that shows the OpenAPI document, and its files. They hold no data, so no token is needed for them."""

from __future__ import annotations

from functools import cache
from importlib import resources

from rota.api import problem
from rota.api.answer import Answer
from rota.api.call import Call
from rota.api.route import Access, NoQuery, route

HTML = "text/html; charset=utf-8"

_FOLDER = resources.files("rota.api") / "pages"

_FILES = {
    "docs.css": ("docs.css", "text/css; charset=utf-8"),
    "docs.js": ("docs.js", "text/javascript; charset=utf-8"),
    "swagger-ui.css": ("swagger/swagger-ui.css", "text/css; charset=utf-8"),
    "swagger-ui-bundle.js": ("swagger/swagger-ui-bundle.js", "text/javascript; charset=utf-8"),
}

SECURITY = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

_MISSING = """<!doctype html><meta charset="utf-8"><title>Rota: HTTP API</title>
<p>This page is not part of this installation, because npm was missing when Rota was installed.</p>
<p>Install Node.js 20 and then Rota again. The document itself is at
<a href="/api/v1/openapi.json">/api/v1/openapi.json</a>.</p>
"""


@route("GET /docs", Access.OPEN, base="/api", media=("text/html",))
async def docs(call: Call, query: NoQuery) -> Answer:
    """A page to read this document and to try its requests."""
    has_renderer = _content("swagger/swagger-ui-bundle.js") is not None
    page = _content("docs.html") if has_renderer else _MISSING.encode()
    return Answer(body=page, media=HTML, headers=SECURITY)


@route("GET /docs/{file}", Access.OPEN, base="/api", media=("text/html",))
async def file(call: Call, query: NoQuery) -> Answer:
    """A file of the page."""
    name, media = _FILES.get(call.path["file"], ("", ""))
    content = _content(name) if name else None
    if content is None:
        raise problem.not_found()
    return Answer(body=content, media=media, headers={**SECURITY, "Cache-Control": "no-cache"})


@cache
def _content(name: str) -> bytes | None:
    found = _FOLDER.joinpath(name)
    return found.read_bytes() if found.is_file() else None
