"""Jobs without Python: an app that is a file, and a third-party executor."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from rota.cli.apps import load_app
from rota.domain.errors import DefinitionError
from rota.sdk import file
from tests.cli.shell import HANG_S, Shell
from tests.docs.pages import blocks
from tests.support.waiting import eventually

OPS = """
app = "ops"

[breakers.disk]
failures = 3
wait = "10s"

[queues.slow]
policy = "fifo"

[jobs.greet]
command = ["echo", "hello {name}"]
result = "text"
breaker = "disk"
queue = "slow"

[jobs.tick]
command = ["true"]
every = "1s"
"""
ADDON = """
from rota.domain.lifecycle import Rules
from rota.domain.outcome import Succeeded
from rota.domain import payload


class Shout:
    completions, grace_s, begins_later = None, 5.0, False

    def __init__(self, target, rules):
        self.mark, self.rules = target["mark"], rules

    async def run(self, claim, attempt):
        text = payload.decode(claim.arguments, "the arguments")["text"]
        attempt.write_log("log", "shouting")
        return Succeeded(payload.encode(text.upper() + self.mark, "the result", 1000))

    def abandon(self):
        pass
"""


TRAPS = ("json", "asyncio", "logging", "socket", "sqlite3")
BESIDE = """
import beside
from rota import App

app = App("beside")
app.command("tick", ["touch", beside.MARKER], every="1s")
"""


@pytest.mark.parametrize("app", ["jobs.toml", "mine:app"])
def test_files_of_the_current_folder_do_not_replace_the_standard_library(tmp_path: Path, app: str) -> None:
    for name in TRAPS:
        (tmp_path / f"{name}.py").write_text("raise SystemExit(f'{__name__} of the current folder was imported')")
    (tmp_path / "beside.py").write_text("MARKER = 'ticked'")
    (tmp_path / "mine.py").write_text(BESIDE)
    (tmp_path / "jobs.toml").write_text('[jobs.tick]\ncommand = ["touch", "ticked"]\nevery = "1s"')
    command = [str(Path(sys.executable).with_name("rota")), "worker", app]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=tmp_path, env=Shell(tmp_path).env, stdout=log, stderr=log)
    try:
        eventually(lambda: (tmp_path / "ticked").exists() or process.poll() is not None)
        assert process.poll() is None, (tmp_path / "log").read_text()
    finally:
        process.terminate()
        process.wait(HANG_S)


def test_an_app_that_is_only_data_imports_nothing_from_its_folder(tmp_path: Path) -> None:
    path = list(sys.path)
    (tmp_path / "jobs.toml").write_text(OPS)
    load_app(str(tmp_path / "jobs.toml"))
    assert sys.path == path


def test_a_module_of_the_folder_comes_before_an_installed_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "click_like.py").write_text("from rota import App\napp = App('mine')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    assert load_app("click_like:app").name == "mine"
    place = sys.path.index(str(tmp_path))
    assert sysconfig.get_path("stdlib") in sys.path[:place]
    assert sysconfig.get_path("purelib") in sys.path[place:]


def test_a_worker_runs_a_file_of_jobs(shell: Shell, worker: Callable[..., None]) -> None:
    (shell.folder / "jobs.toml").write_text(OPS)
    worker(app="jobs.toml")
    assert shell.ok("enqueue", "--load", "jobs.toml", "greet", "name=you", "--wait").rows == "hello you"
    while not shell.ok("executions", "--job", "tick", "--status", "success", "--json").rows:
        pass
    (row,) = shell.ok("executions", "--job", "greet", "--json").rows
    assert (row["app"], row["queue"]) == ("ops", "slow")


def test_a_third_party_executor_is_found_by_its_entry_point(shell: Shell, worker: Callable[..., None]) -> None:
    (shell.folder / "addon.py").write_text(ADDON)
    about = shell.folder / "addon-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: addon\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[rota.executors]\nshout = addon:Shout\n")
    (shell.folder / "jobs.toml").write_text(
        '[jobs.call]\nkind = "shout"\nparameters = ["text"]\ntarget = { mark = "!" }\n'
    )
    shell.env["PYTHONPATH"] = str(shell.folder)
    worker(app="jobs.toml")
    assert shell.ok("enqueue", "--load", "jobs.toml", "call", "text=hey", "--wait").rows == "HEY!"
    (row,) = shell.ok("executions", "--json").rows
    assert row["app"] == "jobs", "the name of the file"
    assert "shouting" in shell.ok("logs", row["executionId"]).out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = 1", "there is no 'a': it may have app, breakers, queues, jobs"),
        ("[jobs", "is not valid TOML"),
        ("", "it has no jobs"),
        ("jobs = 1", r"jobs: write \[jobs.NAME\]"),
        ("[jobs.a]\n", r"\[jobs.a\]: a job has one of command, http, kind, not none of them"),
        ('[jobs.a]\ncommand = ["a"]\nhttp = "b"', "not command, http"),
        ('[jobs.a]\ncommand = "ls -l"', "command must be a list of texts"),
        ("[jobs.a]\ncommand = []", "needs the name of a program"),
        ('[jobs.a]\ncommand = ["a"]\ntimout = "1s"', r"\[jobs.a\]: .*there is no option 'timout'"),
        ('[jobs.a]\ncommand = ["a"]\ncron = "x"', r"\[jobs.a\]"),
        ('[jobs.a]\ncommand = ["a", "{"]', r"\[jobs.a\]"),
        ('[jobs.a]\nkind = "none"', "there is no executor 'none'"),
        ('[jobs."a b"]\ncommand = ["a"]', "a job's name"),
        ("[queues.q]\ndepth = 3", r"\[queues.q\]: there is no option 'depth': did you mean 'max_depth'"),
        ("[queues.q]\nmisc = 3", r"\[queues.q\]: there is no option 'misc': it may have policy, max_depth"),
        ("[breakers.b]\nfailuers = 2", r"\[breakers.b\]: there is no option 'failuers': did you mean 'failures'"),
        ('[jobs.a]\ncommand = ["x"]\nname = "b"', r"\[jobs.a\]: job 'a': there is no option 'name'"),
        (
            '[jobs.a]\ncommand = ["x", "{m}"]\ncron = "* * * * *"',
            r"\[jobs.a\]: .*arguments= must be what it takes: .*'m'",
        ),
        ('[jobs.a]\ncommand = ["a"]\nbreaker = "dsik"\n[breakers.disk]', "'a' .*'dsik'.* did you mean 'disk'"),
        ('[jobs.a]\ncommand = ["a"]\nbreaker = "x"', r"'x', which is not declared: .*\[breakers.x\]"),
        ('[jobs.a]\ncommand = ["a"]\ntime_slice = "1s"', r"\[jobs.a\]: .*time_slice is for a function"),
        ('[jobs.a]\nhttp = "https://example.com"\nprogress_timeout = "1s"', r"\[jobs.a\]: .*progress_timeout"),
        ('[jobs.a]\ncommand = ["a"]\npermanent = [0]', r"\[jobs.a\]: .*exit code 0"),
        ('[jobs.a]\ncommand = ["a"]\npool = ""', r"\[jobs.a\]: a pool's name"),
        ('[jobs.a]\ncommand = ["a"]\npause_after = true', r"\[jobs.a\]: pause_after must be"),
        ("[breakers.b]\nfailures = 0", r"\[breakers.b\]: .*failures must be a number"),
    ],
)
def test_what_a_file_cannot_mean_is_refused_with_the_place(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "jobs.toml"
    path.write_text(text)
    with pytest.raises(DefinitionError, match=words) as refused:
        file.read(path)
    assert str(refused.value).startswith("jobs.toml")


def test_a_file_that_is_not_there(shell: Shell) -> None:
    assert "none.toml cannot be read: No such file" in shell.refused("worker", "none.toml")


def test_the_file_in_the_guide_is_one(tmp_path: Path) -> None:
    (block,) = blocks("docs/execution.md", "toml")
    path = tmp_path / "jobs.toml"
    path.write_text(block.body)
    assert sorted(file.read(path).jobs) == ["ping", "report"]
