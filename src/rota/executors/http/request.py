"""Jobs that are HTTP requests: a template is filled with the arguments and sent; the answer decides the outcome."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from importlib import metadata
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

import msgspec

from rota.clock import Clock, SystemClock
from rota.domain import payload
from rota.domain.claim import Claim
from rota.domain.decoding import prepare
from rota.domain.errors import ArgumentsError, DefinitionError, RotaError
from rota.domain.instant import MICROSECONDS
from rota.domain.lifecycle import Rules
from rota.domain.outcome import Failed, Outcome, Succeeded
from rota.domain.status import Reason
from rota.executors import reference
from rota.executors.attempt_state import AttemptState
from rota.executors.http import address, signing, template
from rota.executors.http.address import Refused
from rota.executors.http.answer import Answer, retry_after_s
from rota.executors.http.template import CONTROL
from rota.executors.port import Executor
from rota.executors.reference import Missing, Reference, Secrets

if TYPE_CHECKING:
    import httpcore
    import httpx

    Answers = Callable[[httpx.Request], Awaitable[httpx.Response]]

AGENT = f"rota/{metadata.version('rota')}"
ARGUMENTS = "arguments"
CONNECTION = "connection"
MOST_REDIRECTS = 5
MOST_EXCERPT = 300

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OURS = re.compile(
    r"accept-encoding|connection|content-(length|type)|expect|host|idempotency-key|keep-alive|te|trailer"
    r"|transfer-encoding|upgrade|user-agent|(x-rota|proxy)-.*"
)
_RETRIED = [CONNECTION, "408", "425", "429", "500-599"]
_SHOWN = ("content-type", "date", "etag", "last-modified", "link", "location", "retry-after", "x-request-id")


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request with placeholders: `{name}` in the URL, in headers and in the body stands for an argument.

    `{{name}}` stands for `{name}` itself.
    """

    url: str
    method: str = "POST"
    headers: Mapping[str, str | Reference] = {}
    body: str | None = ARGUMENTS
    """All arguments as JSON, a text with placeholders, or None. GET, HEAD and DELETE never send all arguments.

    The values of placeholders are written as JSON in a JSON text, percent-encoded in a form, and as they are elsewhere.
    """
    content_type: str = "application/json"
    success: list[int | str] = msgspec.field(default_factory=lambda: ["200-299"])
    retry: list[int | str] = msgspec.field(default_factory=lambda: list(_RETRIED))
    """The codes that are tried again; `connection` stands for everything that leaves a request without an answer."""
    timeout_s: float | None = None
    connect_timeout_s: float = 10.0
    max_response_bytes: int = 1024 * 1024
    follow_redirects: int = 3
    result: Literal["none", "json", "text", "full"] = "none"
    secret: str | None = None
    """The name of the environment variable with the key that requests are signed with; never the key itself."""
    allow: list[str] = []
    """Networks and hosts that may be called although they are private."""
    query: Mapping[str, str | Reference] = {}
    """Added to the query of the URL, with names and values encoded."""

    def __post_init__(self) -> None:
        is_method = re.fullmatch(r"[A-Z]+", self.method) and self.method not in ("CONNECT", "TRACE")
        _require(is_method, "method", f"must be one such as GET or POST, not {self.method[:32]!r}")
        address.check_template(self.url)
        for name, value in self.headers.items():
            _require(_TOKEN.fullmatch(name), "headers", f"have a name that cannot be sent: {name!r}")
            _require(not _OURS.fullmatch(name.lower()), "headers", f"must leave {name} to Rota")
            is_clean = isinstance(value, Reference) or not CONTROL.search(value)
            _require(is_clean, "headers", f"have a line break or a control character in {name}")
        _require(not CONTROL.search(self.content_type), "content_type", "holds a control character")
        if self.body is not None and self.body != ARGUMENTS:
            template.check_body(self.body, self.content_type)
        retried = _codes([code for code in self.retry if code != CONNECTION], "retry_codes")
        both = _codes(self.success, "success") & retried
        _require(not both or self.retry == _RETRIED, "success", f"and retry_codes both have {min(both, default='')}")
        _require(self.timeout_s is None or self.timeout_s > 0, "timeout_s", "must be more than zero")
        _require(self.connect_timeout_s > 0, "connect_timeout_s", "must be more than zero")
        _require(self.max_response_bytes >= 0, "max_response_bytes", "must not be less than zero")
        _require(0 <= self.follow_redirects <= MOST_REDIRECTS, "follow_redirects", f"must be 0 to {MOST_REDIRECTS}")
        _require(self.result in ("none", "json", "text", "full"), "result", "must be none, json, text or full")
        # The text itself is not repeated: it might be the key.
        is_name = self.secret is None or re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,99}", self.secret)
        _require(is_name, "secret", "must be the name of an environment variable")
        address.Allowed(self.allow)


prepare(Request)


def _require(holds: object, field: str, what: str) -> None:
    if not holds:
        raise DefinitionError(f"an HTTP job's {field} {what}")


def parameters(request: Request) -> list[str]:
    """The names of the arguments that a request has placeholders for."""
    body = request.body if request.body != ARGUMENTS else None
    return template.names((*_single_texts(request), body or ""))


def values(request: Request) -> frozenset[str]:
    """The arguments that may have any value, lists and tables too: those that occur only in a JSON body."""
    if request.body in (None, ARGUMENTS):
        return frozenset()
    elsewhere = template.names(_single_texts(request))
    return template.values(request.body or "", request.content_type) - frozenset(elsewhere)


def _single_texts(request: Request) -> list[str]:
    """The texts in which a placeholder takes one text or number."""
    return [request.url, *reference.texts((*request.headers.values(), *request.query.values()))]


def _check_headers(request: Request, secrets: Secrets) -> None:
    for name, value in request.headers.items():
        if isinstance(value, Reference) and CONTROL.search(secrets[value]):
            raise Missing(
                f"the header {name} cannot carry {value.shown}: it contains a line break or a control character"
            )


def _codes(said: Iterable[int | str], field: str) -> frozenset[int]:
    codes: set[int] = set()
    for one in said:
        text = re.sub(r"^([1-5])xx$", r"\g<1>00-\g<1>99", str(one), flags=re.IGNORECASE)
        match = re.fullmatch(r"([1-5][0-9]{2})(?:-([1-5][0-9]{2}))?", text)
        if match is None or (match[2] and match[2] < match[1]):
            raise DefinitionError(f"an HTTP job's {field} takes codes such as 200, 2xx and 500-599, not {one!r}")
        codes |= set(range(int(match[1]), int(match[2] or match[1]) + 1))
    return frozenset(codes)


# --- One request -----------------------------------------------------------------------------


class Call(msgspec.Struct, frozen=True):
    """A request as it is sent: the first one, or the one that follows a redirect."""

    method: str
    url: httpx.URL
    body: bytes | None
    kind: dict[str, str]
    """The headers that describe the body."""
    about: dict[str, str]
    """The headers that identify the execution: every receiver of the body must be able to recognize a repetition."""
    private: dict[str, str]
    """The job's own headers, which may be credentials: only for the origin that the job names."""
    key: bytes | None
    """The key to sign with, for that origin only: another one could use the signature there."""

    @property
    def target(self) -> str:
        return self.url.raw_path.decode("ascii")

    @property
    def shown(self) -> str:
        """The request in words, without the values of its query, which may be secret."""
        path, mark, query = self.target.partition("?")
        named = "&".join(f"{part.partition('=')[0]}=…" if "=" in part else "…" for part in query.split("&"))
        return f"{self.method} {self.url.scheme}://{self.url.netloc.decode()}{path}{mark and mark + named}"

    def headers(self, timestamp: int) -> list[tuple[bytes, bytes]]:
        own = {"Host": self.url.netloc.decode("ascii"), "User-Agent": AGENT, "Accept-Encoding": "identity"}
        signed: dict[str, str] = {}
        if self.key:
            signed = signing.sign(self.method, self.target, self.about, self.body or b"", self.key, timestamp)
        if not any(name.lower() == "accept" for name in self.private):
            own["Accept"] = "*/*"
        sent = {**own, **self.kind, **self.private, **self.about, **signed}
        return [(name.encode(), value.encode()) for name, value in sent.items()]

    def redirected(self, status: int, location: str) -> Call:
        """The request that follows a redirect; another origin gets no credentials that were meant for this one."""
        url = address.follow(self.url, location)
        changes: dict[str, Any] = {"url": url}
        if (status == 303 and self.method != "HEAD") or (status in (301, 302) and self.method == "POST"):
            changes |= {"method": "GET", "body": None, "kind": {}}
        if not address.is_as_trusted(url, self.url):
            changes |= {"private": {}, "key": None}
        return msgspec.structs.replace(self, **changes)


def about_execution(claim: Claim) -> dict[str, str]:
    """The headers that identify an execution."""
    about = {signing.IDEMPOTENCY_KEY: claim.id, "X-Rota-Job": quote(claim.job, safe="/:@ ")}
    return about | {"X-Rota-Attempt": str(claim.attempts + 1), "X-Rota-Fence": str(claim.fence)}


# --- The executor ---------------------------------------------------------------------------------


class HttpExecutor(Executor):
    """Runs a job that is an HTTP request."""

    grace_s = 5.0
    answers: Answers | None = None
    """Answers the requests instead of the network, in tests."""

    def __init__(
        self, request: Request, rules: Rules, *, clock: Clock | None = None, max_result_bytes: int = payload.MOST_BYTES
    ) -> None:
        self.rules = rules
        self._request = request
        self._clock = clock or SystemClock()
        self._max_result_bytes = max_result_bytes
        self._success = _codes(request.success, "success")
        self._retried = _codes([code for code in request.retry if code != CONNECTION], "retry")
        self._key = None if request.secret is None else Reference(env=request.secret)
        values = (*request.headers.values(), *request.query.values(), self._key or "")
        self._references = reference.references(values)
        self._allowed = address.allowed(request.allow)
        self._pool: httpcore.AsyncConnectionPool | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def missing(self) -> str:  # type: ignore[override]
        return address.missing()

    async def run(self, claim: Claim, attempt: AttemptState) -> Outcome:
        try:
            secrets = await reference.read(self._references)
            _check_headers(self._request, secrets)
        except Missing as error:
            return Failed(payload.error("SecretMissing", str(error)))
        return secrets.mask_error(await self._sent(claim, attempt, secrets))

    async def _sent(self, claim: Claim, attempt: AttemptState, secrets: Secrets) -> Outcome:
        where = self._request.url.partition("?")[0]
        try:
            if self._pool is None and self.answers is None:
                await asyncio.to_thread(address.prepared)  # Slow the first time in a process.
            call = self._call(claim, secrets)
            where = call.shown
            async with asyncio.timeout(self._request.timeout_s):
                answer = await self._answer(call, attempt)
        except ArgumentsError as error:
            return Failed(payload.error("ArgumentsError", str(error)), Reason.BAD_ARGUMENTS, permanent=True)
        except Refused as error:
            return Failed(payload.error("HttpRefused", f"{where}: {error}"), permanent=True)
        except Exception as error:
            if (found := address.trouble(error)) is None:
                raise
            kind, sentence = found
            is_for_good = CONNECTION not in self._request.retry
            return Failed(payload.error(kind, f"{where}: {sentence}"), permanent=is_for_good)
        return self._outcome(where, answer)

    def _call(self, claim: Claim, secrets: Secrets) -> Call:
        request = self._request
        arguments = payload.decode(claim.arguments, "the arguments")
        if not isinstance(arguments, dict):
            raise ArgumentsError("the arguments of an HTTP job must have names")
        query = {
            name: secrets[value] if isinstance(value, Reference) else template.text(value, arguments)
            for name, value in request.query.items()
        }
        url = address.parsed(template.url(request.url, query, arguments))
        body: bytes | None = None
        if request.body is not None and request.body != ARGUMENTS:
            body = template.body(request.body, request.content_type, arguments)
        elif request.body is not None and request.method not in ("GET", "HEAD", "DELETE"):
            body = claim.arguments.encode()
        private = {
            name: secrets[value] if isinstance(value, Reference) else template.header(name, value, arguments)
            for name, value in request.headers.items()
        }
        kind = {} if body is None else {"Content-Type": request.content_type}
        key = None if self._key is None else secrets[self._key].encode()
        return Call(request.method, url, body, kind, about_execution(claim), private, key)

    async def _answer(self, call: Call, attempt: AttemptState) -> Answer:
        left = self._request.follow_redirects
        while True:
            answer = await self._send(call, attempt)
            location = answer.headers.get("location") if answer.status in (301, 302, 303, 307, 308) else None
            if not location or not left or answer.status in self._success:
                return answer
            call = call.redirected(answer.status, location)
            left -= 1

    async def _send(self, call: Call, attempt: AttemptState) -> Answer:
        import httpcore  # lazy: an extra

        began = self._clock.monotonic()
        if self.answers is not None:
            answer = await self._answered_by_test(call, self.answers)
        else:
            async with self._connections().stream(
                call.method,
                httpcore.URL(
                    scheme=call.url.raw_scheme, host=call.url.raw_host, port=call.url.port, target=call.url.raw_path
                ),
                headers=call.headers(self._clock.now() // MICROSECONDS),
                content=call.body if call.method in ("GET", "HEAD") else call.body or b"",
                extensions={"timeout": {"connect": self._request.connect_timeout_s}},
            ) as response:
                answer = await self._read(response)
        attempt.write_log("log", f"{call.shown} → {answer.status} in {self._clock.monotonic() - began:.2f} s")
        return answer

    async def _answered_by_test(self, call: Call, answers: Answers) -> Answer:
        import httpx  # lazy: an extra

        headers = call.headers(self._clock.now() // MICROSECONDS)
        response = await answers(httpx.Request(call.method, call.url, headers=headers, content=call.body))

        raw = [(name, value) for name, value in response.headers.raw if name.lower() != b"content-encoding"]
        return self._kept(response.status_code, raw, response.content)  # httpx has decompressed it.

    async def _read(self, response: httpcore.Response) -> Answer:
        body = bytearray()
        async for chunk in response.aiter_stream():
            body += chunk
            if len(body) > self._request.max_response_bytes:
                break
        return self._kept(response.status, response.headers, bytes(body))

    def _kept(self, status: int, raw: list[tuple[bytes, bytes]], body: bytes) -> Answer:
        headers = {name.decode("latin-1").lower(): value.decode(errors="replace") for name, value in raw}
        most = self._request.max_response_bytes
        return Answer(status, headers, body[:most], is_cut=len(body) > most)

    def _connections(self) -> httpcore.AsyncConnectionPool:
        loop = asyncio.get_running_loop()
        if self._pool is None or self._loop is not loop:
            self._pool, self._loop = address.pool(self._allowed), loop
        return self._pool

    def _outcome(self, where: str, answer: Answer) -> Outcome:
        if answer.status in self._success:
            try:
                return Succeeded(self._result(answer))
            except RotaError as error:
                return Failed(payload.error("ResultError", f"{where}: {error}"), Reason.BAD_RESULT, permanent=True)
        excerpt = " ".join(answer.text[:MOST_EXCERPT].split()) if answer.is_readable else ""
        sentence = f"{where} was answered with {answer.status}{': ' + excerpt if excerpt else ''}"
        failure = payload.error("HttpStatus", sentence)
        if answer.status not in self._retried:
            return Failed(failure, permanent=True)
        return Failed(failure, retry_in_s=retry_after_s(answer.headers.get("retry-after", ""), self._clock.now()))

    def _result(self, answer: Answer) -> str:
        if self._request.result == "none":
            return "null"
        if not answer.is_readable:
            raise ArgumentsError(
                f"the answer is compressed ({answer.headers['content-encoding']}), which the request did not allow"
            )
        if self._request.result == "json":
            if answer.is_cut:
                most = self._request.max_response_bytes
                raise ArgumentsError(f"the answer was cut off after {most:,} bytes, so it is not valid JSON")
            value = payload.decode(answer.body, "the answer") if answer.body.strip() else None
            return payload.encode(value, "the answer", self._max_result_bytes)
        text, is_cut = answer.text, answer.is_cut
        while True:
            try:
                return payload.encode(self._shown_answer(answer, text, is_cut), "the answer", self._max_result_bytes)
            except ArgumentsError:
                if not text:
                    raise
            text, is_cut = text[: len(text) // 2], True

    def _shown_answer(self, answer: Answer, text: str, is_cut: bool) -> Any:
        if self._request.result == "text":
            return f"{text}\n… cut off after {len(text):,} characters" if is_cut else text
        headers = {name: answer.headers[name] for name in _SHOWN if name in answer.headers}
        body: Any = text
        if not is_cut and "json" in headers.get("content-type", ""):
            try:
                body = payload.decode(answer.body, "the answer")
            except ArgumentsError:
                body = text
        return {"status": answer.status, "headers": headers, "body": body, "is_cut": is_cut}
