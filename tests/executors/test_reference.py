"""Secrets by reference: read by the worker at each attempt, given to the command or request, and shown nowhere."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rota import App
from rota.domain.errors import DefinitionError
from rota.domain.outcome import Failed, Succeeded
from rota.executors.http.request import Request
from rota.executors.process.command import Command
from rota.executors.reference import MOST_BYTES, Reference
from rota.sdk import file
from rota.sdk.app import registry_of
from rota.sdk.job import registered
from rota.store import definition_reader
from tests.executors import test_command, test_http
from tests.executors.test_http import LOCAL, Server

pytestmark = pytest.mark.usefixtures("closed")
SECRET = "s3cr3t/of=the+bank"


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANK_TOKEN", SECRET)


@pytest.fixture
def secret_file(tmp_path: Path) -> str:
    (tmp_path / "token").write_text(f"of a file: {SECRET}\n")
    return str(tmp_path / "token")


def command(script: str, **more: Any) -> Command:
    return msgspec.convert({"argv": ["sh", "-c", script], **more}, Command)


# --- Commands -------------------------------------------------------------------------------------


async def test_a_command_gets_the_values_of_its_references(secret_file: str) -> None:
    data = {
        "argv": ["sh", "-c", 'echo "$TOKEN|$1|$FILE"', "sh", {"env": "BANK_TOKEN", "prefix": "--token="}],
        "environment": {"TOKEN": {"env": "BANK_TOKEN"}, "FILE": {"file": secret_file}},
        "result": "text",
    }
    outcome, _ = await test_command.attempt(msgspec.convert(data, Command))
    assert isinstance(outcome, Succeeded), outcome
    assert msgspec.json.decode(outcome.result) == f"{SECRET}|--token={SECRET}|of a file: {SECRET}"


async def test_a_secret_is_neither_in_the_log_nor_in_the_error() -> None:
    script = 'echo "with $TOKEN"; echo "and $TOKEN$TOKEN" >&2; exit 1'
    outcome, context = await test_command.attempt(command(script, environment={"TOKEN": {"env": "BANK_TOKEN"}}))
    assert isinstance(outcome, Failed)
    assert context.lines == [("stdout", "with ***"), ("stderr", "and ******")]
    assert outcome.error.traceback == "--- stdout\nwith ***\n--- stderr\nand ******"


async def test_the_value_is_read_at_each_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    reading = command('echo "$TOKEN"', environment={"TOKEN": {"env": "BANK_TOKEN"}}, result="text")
    monkeypatch.setenv("BANK_TOKEN", "{rotated}")
    outcome, _ = await test_command.attempt(reading)
    assert outcome == Succeeded('"{rotated}"')


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"env": "NOT_HERE"}, "the environment variable NOT_HERE is empty or not set on this worker"),
        ({"file": "/no/such"}, "the file /no/such cannot be read on this worker: No such file or directory"),
        ({"file": "/"}, "the file / "),
        ({"file": "{folder}/pipe"}, "pipe is not a plain file"),
        ({"file": "{folder}/long"}, f"long is longer than {MOST_BYTES:,} bytes"),
        ({"file": "{folder}/binary"}, "binary is not valid UTF-8"),
        ({"file": "{folder}/empty"}, "empty is empty"),
        ({"file": "{folder}/null"}, "null holds a NUL character"),
    ],
    ids=lambda value: "",
)
async def test_an_attempt_without_its_secret_fails_and_names_it(
    tmp_path: Path, wanted: dict[str, str], words: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    contents = {"long": b"x" * (MOST_BYTES + 1), "binary": b"\xff", "empty": b"\n", "null": b"a\0b"}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    named = {key: value.replace("{folder}", str(tmp_path)) for key, value in wanted.items()}
    outcome, _ = await test_command.attempt(command("true", environment={"TOKEN": named}))
    assert isinstance(outcome, Failed)
    assert (outcome.error.type, outcome.permanent) == ("SecretMissing", False)
    assert words in outcome.error.message


# --- Requests -------------------------------------------------------------------------------------


def request(url: str, **more: Any) -> Request:
    return msgspec.convert({"url": url, "allow": LOCAL, **more}, Request)


async def test_a_request_gets_the_values_of_its_references(secret_file: str) -> None:
    headers = {"Authorization": {"env": "BANK_TOKEN", "prefix": "Bearer "}, "X-File": {"file": secret_file}}
    async with Server(test_http.answer()) as server:
        for path in ("/a?b=c", "/a", "/a?"):
            query = {"key": {"env": "BANK_TOKEN"}, "n&m": "{n}"}
            await test_http.result(request(server.url + path, headers=headers, query=query), {"n": "1/2"})
    added = "key=s3cr3t%2Fof%3Dthe%2Bbank&n%26m=1%2F2"
    assert [seen.target for seen in server.seen] == [f"/a?b=c&{added}", f"/a?{added}", f"/a?{added}"]
    assert server.seen[0].headers["authorization"] == f"Bearer {SECRET}"
    assert server.seen[0].headers["x-file"] == f"of a file: {SECRET}"


async def test_a_secret_in_a_response_is_masked() -> None:
    async with Server(test_http.answer(500, f"no {SECRET} is s3cr3t%2Fof%3Dthe%2Bbank".encode())) as server:
        failed = await test_http.failure(request(server.url, headers={"Authorization": {"env": "BANK_TOKEN"}}))
    assert failed.error.message.endswith("was answered with 500: no *** is ***")


@pytest.mark.parametrize("value", ["", "a\nb"])
async def test_no_request_is_sent_without_a_valid_secret(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("BANK_TOKEN", value)
    async with Server(test_http.answer()) as server:
        failed = await test_http.failure(request(server.url, headers={"Authorization": {"env": "BANK_TOKEN"}}))
    assert (failed.error.type, failed.permanent, server.seen) == ("SecretMissing", False, [])
    assert "the environment variable BANK_TOKEN" in failed.error.message


# --- Declarations ---------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [{}, {"env": "A", "file": "/a"}, {"env": "A B"}, {"env": ""}, {"file": "a"}])
def test_an_invalid_reference_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(DefinitionError, match="reference"):
        Reference(**wrong)


def test_a_declaration_with_a_bad_reference_says_which_option(tmp_path: Path) -> None:
    app = App("bank", url=f"sqlite:///{tmp_path}/rota.db")
    with pytest.raises(DefinitionError, match="environment must be a table of texts by name, or of references"):
        app.command("pay", ["true"], environment={"TOKEN": {"enviroment": SECRET}})
    with pytest.raises(DefinitionError, match="names one of env and file"):
        app.http("ask", "https://example.com/", headers={"A": {"prefix": SECRET}})
    with pytest.raises(DefinitionError, match=r"a single \{ in the variable TOKEN") as refused:
        app.command("pay", ["true"], environment={"TOKEN": SECRET + "{"})
    assert SECRET not in str(refused.value)


OPS = f"""
app = "bank"

[jobs.pay]
command = ["pay", "--token", {{ env = "BANK_TOKEN" }}, "--password", "{SECRET}"]
environment = {{ LITERAL = "{SECRET}", TOKEN = {{ file = "/run/secrets/bank" }} }}
breaker = "bank"

[jobs.ask]
http = "https://example.com/?key={SECRET}"
headers = {{ Authorization = {{ env = "BANK_TOKEN", prefix = "Bearer " }}, X-Key = "{SECRET}" }}
query = {{ token = {{ env = "BANK_TOKEN" }} }}

[breakers.bank]
"""


def test_no_literal_secret_reaches_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_URL", f"sqlite:///{tmp_path}/rota.db")
    (tmp_path / "jobs.toml").write_text(OPS)
    app = file.read(tmp_path / "jobs.toml")
    rows = registry_of(app).connection.store().read(definition_reader.all_jobs, "default")
    targets = {(about := msgspec.json.decode(row.definition))["name"]: about["target"] for row in rows}
    app.close()
    assert targets["pay"]["argv"] == ["pay", "--token", {"env": "BANK_TOKEN"}, "--password", "***"]
    assert targets["pay"]["environment"] == {"LITERAL": "***", "TOKEN": {"file": "/run/secrets/bank"}}
    assert targets["ask"]["headers"] == {"Authorization": {"env": "BANK_TOKEN", "prefix": "Bearer "}, "X-Key": "***"}
    assert not [path for path in tmp_path.glob("rota.db*") if path.is_file() and SECRET.encode() in path.read_bytes()]


async def test_a_literal_is_masked_where_it_is_shown_and_not_where_it_is_used(tmp_path: Path) -> None:
    app = App("bank", url=f"sqlite:///{tmp_path}/rota.db")
    job = app.command("pay", ["printenv", "TOKEN"], environment={"TOKEN": SECRET}, result="text", breaker="bank")
    app.breaker("bank")
    claim = test_command.claim_of({})
    outcome = await registry_of(app).targets()["pay"].run(claim, test_command.Listening(claim, None))
    assert outcome == Succeeded(msgspec.json.encode(SECRET).decode())
    assert registered(job).definition.target["environment"] == {"TOKEN": "***"}
