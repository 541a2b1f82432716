"""The dashboard: one page, which is the answer to all of its addresses, and its files.

Both hold no data, so no token is needed for them: the script of the page calls the API as any other caller does. The
build of the package puts them here. An installation without them says how to get them.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

import msgspec

from rota.api import problem
from rota.api.answer import Answer
from rota.api.call import Call
from rota.api.resources.pages import HTML, SECURITY
from rota.api.route import Access, NoQuery, make_route, route

NONCE = "ROTA_NONCE"
"""What the build writes where the nonce of an answer belongs."""
NONCE_BITS = 128
_FOLDER = resources.files("rota.api") / "pages"
_FILE = re.compile(r"[\w.-]+-[\w-]{8}\.(js|css|svg)", re.ASCII)
_MEDIA = {
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}
_ENCODINGS = {"br": ".br", "gzip": ".gz"}
"""Best first, with the endings of the files that the build has compressed."""
_MISSING = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Rota</title>
<h1>The dashboard is not part of this installation</h1>
<p>npm was missing when Rota was installed. Install Node.js 20 or newer and then Rota again; in a checkout, run
<code>make ui</code> and start the server again.</p>
<p>Everything else works: the <a href="/api/docs">HTTP API</a>, the commands of <code>rota</code>, and the workers.</p>
</html>
"""


class Address(msgspec.Struct, frozen=True):
    """An address of the dashboard, and the file in `ui/src/pages` that shows it."""

    path: str
    page: str


_ADDRESSES = msgspec.json.Decoder(list[Address])


async def page(call: Call, query: NoQuery) -> Answer:
    """The dashboard."""
    found = _content("index.html")
    if found is None:
        return Answer(body=_MISSING.encode(), media=HTML, headers=SECURITY)
    nonce = f"{call.services.clock.secret_bits(NONCE_BITS):032x}"
    policy = SECURITY["Content-Security-Policy"].replace("style-src 'self'", f"style-src 'self' 'nonce-{nonce}'")
    headers = {**SECURITY, "Content-Security-Policy": policy}
    return Answer(body=found.replace(NONCE.encode(), nonce.encode()), media=HTML, headers=headers)


async def unknown(call: Call, query: NoQuery) -> Answer:
    """The page itself says that there is nothing at this address."""
    return msgspec.structs.replace(await page(call, query), status=404)


@route("GET /assets/{file}", Access.OPEN, base="", media=("text/html",))
async def file(call: Call, query: NoQuery) -> Answer:
    """A file of the dashboard.

    Its name has a hash of its content, so a browser may keep it for good.
    """
    name = call.path["file"]
    content = _content(f"assets/{name}") if _FILE.fullmatch(name) else None
    if content is None:
        raise problem.not_found()
    headers = {**SECURITY, "Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
    for encoding in _accepted(call.headers.get("accept-encoding", "")):
        smaller = _content(f"assets/{name}{_ENCODINGS[encoding]}")
        if smaller is not None:
            content, headers["Content-Encoding"] = smaller, encoding
            break
    return Answer(body=content, media=_MEDIA[name.rpartition(".")[2]], headers=headers)


def addresses() -> list[Address]:
    return _ADDRESSES.decode((_FOLDER / "addresses.json").read_bytes())


def folder() -> Traversable:
    return _FOLDER / "dashboard"


def _accepted(header: str) -> list[str]:
    """The encodings that a client takes. `q=0` refuses one; other weights do not matter between these two."""
    asked = [part.replace(" ", "").lower().partition(";") for part in header.split(",")]
    taken = {name for name, _, weight in asked if not re.fullmatch(r"q=0(\.0*)?", weight)}
    return [name for name in _ENCODINGS if name in taken]


@cache
def _content(name: str) -> bytes | None:
    found = folder().joinpath(name)
    return found.read_bytes() if found.is_file() else None


_PAGE: dict[str, Any] = {"base": "", "media": ("text/html",), "is_page": True}
UNKNOWN = make_route(unknown, "GET ", Access.OPEN, **_PAGE)
for _address in addresses():
    route(f"GET {_address.path}", Access.OPEN, **_PAGE)(page)
