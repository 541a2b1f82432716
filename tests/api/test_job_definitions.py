"""What a definition of a job may say, and how it is refused."""

from __future__ import annotations

from typing import Any

import httpx

from rota import App
from rota.domain.access import Role, Scope
from rota.sdk.app import registry_of
from rota.store import definition_reader
from tests.api.server import Server, code

JSON = {"Content-Type": "application/json"}
REFUSED_COMMANDS: list[tuple[Any, str]] = [
    ("a > b", "needs_shell"),
    ("a && b", "needs_shell"),
    ("a | b", "needs_shell"),
    ("a $(id)", "needs_shell"),
    ("a\nb", "needs_shell"),
    ("a 'x", "bad_field"),
    ("", "bad_field"),
    ("''", "bad_field"),
    ([], "bad_field"),
    ([""], "bad_field"),
    (["a", 3], "bad_field"),
    (7, "bad_field"),
]
ACCEPTED_COMMANDS: list[tuple[Any, list[str]]] = [
    ("a '>'", ["a", ">"]),
    ("a '; rm -rf /' \"b c\" \\;", ["a", "; rm -rf /", "b c", ";"]),
    (["a", "; rm -rf /"], ["a", "; rm -rf /"]),
]
WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, ""),
    ({"command": ["a"], "http": {"url": "https://example.com"}}, "/http"),
    ({"http": {"url": "https://example.com"}, "environment": {"A": "b"}}, "/environment"),
    ({"command": ["a"], "timeout": "soon"}, "/timeout"),
    ({"command": ["a"], "timeout": -1}, "/timeout"),
    ({"command": ["a"], "queue": "a b"}, "/queue"),
    ({"command": ["a"], "schedule": "* * *"}, "/schedule"),
    ({"command": ["a"], "schedule": ["0 0 * * *", "*/0 * * * *"]}, "/schedule/1"),
    ({"command": ["a"], "schedule": {"every": "0s"}}, "/schedule"),
    ({"command": ["a"], "dependencies": ["one"]}, "/dependencies/0"),
    ({"command": ["a"], "environment": {"LD_PRELOAD": "x.so"}}, "/environment/LD_PRELOAD"),
    ({"command": ["a"], "environment": {"PYTHONPATH": "/x"}}, "/environment/PYTHONPATH"),
    ({"command": ["a"], "environment": {"A=B": "x"}}, "/command"),
    ({"command": ["a"], "environment": {"API_TOKEN": "abc"}}, "/command"),
    ({"command": ["a", "--password", "abc"]}, "/command"),
    ({"http": {"url": "ftp://example.com"}}, "/http"),
    ({"http": {"url": "https://example.com", "headers": {"Authorization": "Bearer abc"}}}, "/http"),
    ({"http": {"url": "https://example.com", "headers": {"X": {"env": "ROTA_URL"}}}}, "/http"),
    ({"http": {"url": "https://example.com", "headers": {"X": {"file": "/etc/passwd"}}}}, "/http"),
    ({"http": {"url": "https://example.com", "allow": ["127.0.0.1"]}}, "/http/allow"),
    ({"function": {"app": "os", "name": "system"}}, "/function/name"),
    ({"command": ["a"], "parameters": {"type": "nothing"}}, "/parameters"),
    ({"command": ["a"], "tags": ["a", 1]}, "/tags/1"),
]
WRONG_OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"delay": "soon"}, "/delay"),
    ({"delay": 1, "at": "2030-01-01T00:00:00Z"}, "/at"),
    ({"priority": "urgent"}, "/priority"),
    ({"retries": -1}, "/retries"),
    ({"unique": {"onConflict": "explode"}}, "/unique/onConflict"),
    ({"queue": "a b"}, "/queue"),
    ({"callbak": 1}, "/callbak"),
]


async def define(client: httpx.AsyncClient, **about: Any) -> httpx.Response:
    return await client.post("/jobs", json={"name": "one", **about})


def pointer(answer: httpx.Response) -> str:
    assert answer.status_code == 422, answer.text
    found: str = answer.json()["errors"][0]["pointer"]
    return found


async def test_case_2_commands_that_are_refused(client: httpx.AsyncClient) -> None:
    for command, refusal in REFUSED_COMMANDS:
        answer = await define(client, command=command)
        assert (code(answer), pointer(answer)) == (refusal, "/command"), command


async def test_case_2_commands_that_are_accepted(client: httpx.AsyncClient, server: Server) -> None:
    for command, argv in ACCEPTED_COMMANDS:
        made = await client.put("/jobs/one", json={"command": command})
        assert made.json()["command"] == command
        row = server.store.read(definition_reader.find, "default", "one")
        assert row is not None
        assert row.about.target["argv"] == argv


async def test_case_4_retries_that_are_refused(client: httpx.AsyncClient) -> None:
    for retries in ("3", 3.0, -1, 1e9, 1000, True):
        assert pointer(await define(client, command=["a"], retries=retries)) == "/retries"


async def test_case_4_retries_or_a_policy(client: httpx.AsyncClient) -> None:
    both = await define(client, command=["a"], retries=3, retry={"attempts": 4})
    assert pointer(both) == "/retries"
    made = (await define(client, command=["a"], retries=None)).json()
    assert (made["retries"], made["retry"]) == (4, None)
    policy = {"policy": "fixed", "attempts": 2, "delay": "5s"}
    changed = (await client.patch("/jobs/one", json={"retry": policy})).json()
    assert (changed["retries"], changed["retry"]["attempts"]) == (None, 2)
    assert (await client.patch("/jobs/one", json={"retries": 0})).json()["retries"] == 0
    assert pointer(await client.patch("/jobs/one", json={"retry": {"policy": "fixed", "base": 3}})) == "/retry"


async def test_case_27_members_that_are_not_for_callers(client: httpx.AsyncClient) -> None:
    for member in ("namespace", "status", "fence", "actor", "executionId", "jobId", "origin"):
        for answer in (
            await define(client, command=["a"], **{member: "x"}),
            await client.put("/jobs/one", json={"command": ["a"], member: "x"}),
            await client.post("/jobs/one/trigger", json={member: "x"}),
            await client.post("/templates", json={"name": "t", "job": {"command": ["a"]}, member: "x"}),
        ):
            assert (code(answer), pointer(answer)) == ("unknown_field", f"/{member}")


async def test_what_is_wrong_is_pointed_to(client: httpx.AsyncClient) -> None:
    for about, where in WRONG:
        answer = await define(client, **about)
        assert answer.status_code == 422, (about, answer.text)
        assert (answer.json().get("errors") or [{"pointer": ""}])[0]["pointer"] == where, about


async def test_no_bound_is_written_as_zero(client: httpx.AsyncClient) -> None:
    made = (await define(client, command=["a"], timeout=0)).json()
    assert (made["timeout"], made["definition"]["timeout"]) == (0, 0)
    assert (await client.patch("/jobs/one", json={"timeout": None})).json()["timeout"] == 3600


async def test_a_cycle_is_refused(client: httpx.AsyncClient) -> None:
    await define(client, command=["a"])
    await client.post("/jobs", json={"name": "two", "command": ["a"], "dependencies": [{"job": "one", "on": "done"}]})
    answer = await client.patch("/jobs/one", json={"dependencies": ["two"]})
    assert (answer.status_code, code(answer)) == (422, "cycle")
    assert (await client.get("/jobs/one")).json()["version"] == 1


async def test_several_schedules_and_their_warnings(client: httpx.AsyncClient) -> None:
    schedule = ["0 3 * * *", {"every": "10m", "overlap": "allow"}, {"cron": "30 2 * * *", "tz": "Europe/Berlin"}]
    made = (await define(client, command=["a"], schedule=schedule)).json()
    assert [one["name"] for one in made["schedules"]] == ["one", "one:2", "one:3"]
    assert made["definition"]["schedule"] == schedule
    assert any("does not exist" in one for one in made["warnings"]), made["warnings"]
    assert any("rota worker" in one for one in made["warnings"])
    changed = (await client.patch("/jobs/one", json={"schedule": "0 4 * * *"})).json()
    assert [one["name"] for one in changed["schedules"]] == ["one"]


async def test_a_dry_run_shows_what_would_be(client: httpx.AsyncClient) -> None:
    body = {"name": "one", "command": ["a"], "schedule": "0 3 * * *"}
    would = (await client.post("/jobs?dryRun=true", json=body)).json()
    assert would["dryRun"] is True
    assert len(would["would"]["nextTicks"]) == 10
    assert would["would"]["workers"] == []
    assert "rota worker" in would["would"]["reason"]
    assert (await client.get("/jobs/one")).status_code == 404


async def test_arguments_are_checked_by_a_schema(client: httpx.AsyncClient) -> None:
    schema = {
        "type": "object",
        "properties": {"month": {"type": "integer", "minimum": 1, "maximum": 12}},
        "required": ["month"],
        "additionalProperties": False,
    }
    made = await define(client, command=["report", "{month}"], parameters=schema)
    assert made.status_code == 201, made.text
    for arguments, where in (
        ({"month": 13}, "/arguments/month"),
        ({}, "/arguments/month"),
        ({"x": 1}, "/arguments/month"),
    ):
        answer = await client.post("/jobs/one/trigger", json={"arguments": arguments})
        assert (code(answer), pointer(answer)) == ("bad_arguments", where)
    good = await client.post("/jobs/one/trigger", content=b'{"arguments": {"month": 12}}', headers=JSON)
    assert good.status_code == 201
    made = await client.get(f"/executions/{good.json()['executionId']}")
    assert made.json()["arguments"] == {"month": 12}
    assert pointer(await client.post("/jobs/one/trigger", json={"arguments": [1]})) == "/arguments"


async def test_options_of_a_trigger(client: httpx.AsyncClient) -> None:
    await define(client, command=["a"])
    for options, where in WRONG_OPTIONS:
        assert pointer(await client.post("/jobs/one/trigger", json=options)) == where, options


async def test_a_key_gives_the_same_execution(client: httpx.AsyncClient) -> None:
    await define(client, command=["a"])
    first = await client.post("/jobs/one/trigger", json={"key": "k", "tags": ["x"], "headers": {"a": "b"}})
    second = await client.post("/jobs/one/trigger", json={"key": "k"})
    assert (first.status_code, second.status_code) == (201, 200)
    assert (first.json()["created"], second.json()["created"]) == (True, False)
    assert first.json()["executionId"] == second.json()["executionId"]


async def test_case_31_a_command_needs_its_own_scope(server: Server) -> None:
    author = server.token(Role.AUTHOR)
    every = server.token(None, scopes=(Scope.READ, Scope.DEFINE, Scope.DEFINE_HTTP, Scope.DEFINE_COMMAND))
    nothing = server.token(None, scopes=(Scope.READ, Scope.DEFINE))
    http = {"url": "https://example.com/hook"}
    async with server.client(author) as client, server.client(every) as mighty, server.client(nothing) as weak:
        assert code(await define(client, command=["a"])) == "wrong_scope"
        assert (await define(client, http=http)).status_code == 201
        for refused in (
            await client.patch("/jobs/one", json={"command": ["a"]}),
            await client.put("/jobs/one", json={"command": ["a"]}),
            await client.post("/templates", json={"name": "t", "job": {"command": ["a"]}}),
        ):
            assert (refused.status_code, code(refused)) == (403, "wrong_scope")
        assert (await mighty.post("/templates", json={"name": "t", "job": {"command": ["a"]}})).status_code == 201
        made_of = await client.post("/jobs", json={"name": "two", "template": "t"})
        assert code(made_of) == "wrong_scope"
        assert (await mighty.put("/jobs/one", json={"command": ["a"]})).status_code == 200
        assert (await client.post("/jobs/one/rollback", json={"version": 1})).status_code == 200
        assert code(await client.post("/jobs/one/rollback", json={"version": 2})) == "wrong_scope"
        assert code(await weak.post("/jobs", json={"name": "three", "http": http})) == "wrong_scope"


async def test_a_function_of_an_app_under_another_name(client: httpx.AsyncClient, server: Server) -> None:
    app = App("shop", url=server.settings.url)

    @app.job
    def send(to: str, count: int = 1) -> None: ...

    registry_of(app).connection.store()
    app.declare()
    app.close()
    made = await define(client, function={"app": "shop", "name": "send"}, schedule="0 3 * * *", arguments={"to": "x"})
    assert (made.status_code, made.json()["app"]) == (201, "shop")
    wrong = await client.post("/jobs", json={"name": "two", "function": {"app": "shop", "name": "send"}, "app": "x"})
    assert pointer(wrong) == "/app"
    unfit = {"function": {"app": "shop", "name": "send"}, "schedule": "0 3 * * *", "arguments": {"too": "x"}}
    assert pointer(await client.post("/jobs", json={"name": "two", **unfit})) == "/arguments"
