"""Commands as jobs: their arguments, their output, and how they end."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rota.domain.claim import Claim
from rota.domain.errors import DefinitionError
from rota.domain.outcome import Failed, GivenBack, Lost, Outcome, Succeeded
from rota.domain.status import Reason
from rota.executors.attempt_state import AttemptState
from rota.executors.port import Executor
from rota.executors.process import process_tree, spawner
from rota.executors.process.command import Command, CommandExecutor, filled, parameters
from rota.executors.process.lines import MOST_LAST, MOST_LINE
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("closed")

FAMILY = str(Path(__file__).with_name("programs") / "family.py")


class Listening(AttemptState):
    """A state of an attempt that keeps what the attempt writes, and looks at this process's memory meanwhile."""

    lines: list[tuple[str, str]] = []
    count: int = 0
    most_bytes: int = 0

    def write_lines(self, stream: str, texts: list[str]) -> None:
        if self.count // 1000 != (self.count + len(texts)) // 1000:
            self.most_bytes = max(self.most_bytes, own_bytes())
        self.lines += [(stream, text) for text in texts[: max(0, 1000 - self.count)]]
        self.count += len(texts)


def own_bytes() -> int:
    process = process_tree.read(os.getpid())
    assert process is not None
    return process_tree.resident_bytes([process])


def claim_of(arguments: dict[str, Any]) -> Claim:
    return Claim(
        "an-id",
        0,
        0,
        4,
        2,
        0,
        0,
        0,
        None,
        "jobs.it",
        msgspec.json.encode(arguments).decode(),
        None,
        run_at=0,
        created_at=0,
    )


async def attempt(command: Command, deadline: int | None = None, **arguments: Any) -> tuple[Outcome, Listening]:
    claim = claim_of(arguments)
    state = Listening(claim, deadline)
    executor: Executor = CommandExecutor(command)
    return await executor.run(claim, state), state


async def result(*argv: str, **arguments: Any) -> Any:
    outcome, _ = await attempt(Command(argv=list(argv), result="text"), **arguments)
    assert isinstance(outcome, Succeeded), outcome
    return msgspec.json.decode(outcome.result)


async def failure(command: Command, **arguments: Any) -> Failed:
    outcome, _ = await attempt(command, **arguments)
    assert isinstance(outcome, Failed), outcome
    return outcome


def shell(script: str, **more: Any) -> Command:
    return Command(argv=["sh", "-c", script], **more)


# --- What a command is given ----------------------------------------------------------------------


async def test_placeholders_are_replaced_by_arguments() -> None:
    given = {"a": "x y", "n": 3, "f": 1.5, "b": True}
    assert await result("printf", "%s|", "{a}", "n={n}", "{f}{b}", "{{a}}", **given) == "x y|n=3|1.5true|{a}|"


async def test_a_list_becomes_several_arguments_where_it_is_declared() -> None:
    assert await result("printf", "%s|", "{files*}", "end", files=["a b", 2, "{x}", "-n"]) == "a b|2|{x}|-n|end|"
    assert await result("printf", "%s|", "{files*}", "end", files=[]) == "end|"
    failed = await failure(Command(argv=["echo", "{files*}"]), files="a")
    assert (failed.reason, failed.permanent) == (Reason.BAD_ARGUMENTS, True)
    assert failed.error.message == "the argument 'files' must be a list, because the command has {files*} for it"


async def test_a_list_is_refused_for_a_placeholder_that_takes_a_text(tmp_path: Path) -> None:
    (tmp_path / "of others").write_text("secret\n")
    search = Command(argv=["grep", "{pattern}"], result="text")
    failed = await failure(search, pattern=["^secret", str(tmp_path / "of others")])
    assert (failed.reason, failed.permanent) == (Reason.BAD_ARGUMENTS, True)
    assert "only a parameter written {pattern*} takes a list" in failed.error.message


async def test_no_value_after_two_dashes_is_an_option(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("--version\n")
    found = await result("grep", "-c", "--", "{pattern}", str(tmp_path / "lines"), pattern="--version")
    assert found == "1"


@pytest.mark.parametrize("text", ["; exit 3", "$(id)", "`id`", "a' b\" c", "* ?", "\n\t", "-n", "", "{a}", "{{", "é🦉"])
async def test_no_argument_is_interpreted_by_a_shell(text: str) -> None:
    assert await result("printf", "<%s>", "{a}", a=text) == f"<{text}>"
    assert await result("printf", "<%s>", "{a}{b}", a=text, b="{a}") == f"<{text}{{a}}>"


@pytest.mark.parametrize(
    "arguments",
    [{}, {"a": None}, {"a": {}}, {"a": [None]}, {"a": [[]]}, {"a": "x\0y"}, {"a": ["\0"]}, {"a": 1, "b": 2}],
    ids=repr,
)
@pytest.mark.parametrize("element", ["{a}", "{a*}"])
async def test_arguments_that_do_not_fit_fail_without_a_retry(element: str, arguments: dict[str, Any]) -> None:
    failed = await failure(Command(argv=["echo", element]), **arguments)
    assert (failed.error.type, failed.reason, failed.permanent) == ("ArgumentsError", Reason.BAD_ARGUMENTS, True)


def test_parameters_are_named_in_order() -> None:
    command = Command(argv=["x", "{b}", "{a}-{b}", "{{no}}"], environment={"E": "{c}"}, directory="/{d}/{{}}/{b}.d")
    assert parameters(command) == ["b", "a", "c", "d"]
    given = {"a": 1, "b": "B", "c": False, "d": ".x"}
    assert filled(command, given) == (["x", "B", "1-B", "{no}"], {"E": "false"}, "/.x/{}/B.d")


@pytest.mark.parametrize(
    "wrong",
    [
        {"argv": []},
        {"argv": [""]},
        {"argv": ["x", "{"]},
        {"argv": ["x", "{a b}"]},
        {"argv": ["x", "a{a*}"]},
        {"argv": ["x", "{a*}", "{a}"]},
        {"argv": ["x", "{a*}"], "directory": "/{a}"},
        {"argv": ["x"], "environment": {"A": "{a*}"}},
        {"argv": ["x"], "directory": "{a*}"},
        {"argv": ["x", "\0"]},
        {"argv": ["x"], "environment": {"A=B": ""}},
        {"argv": ["x"], "environment": {"A": "}"}},
        {"argv": ["x"], "inherits": [""]},
        {"argv": ["x"], "grace_s": -1},
        {"argv": ["x"], "memory_bytes": 0},
        {"argv": ["x"], "directory": "/tmp/{"},
        {"argv": ["x"], "permanent": [0]},
        {"argv": ["x"], "retry": [0]},
        {"argv": ["x"], "retry": [3], "permanent": [4, 3]},
        {"argv": ["x"], "success": [0, 2], "permanent": [2]},
        {"argv": ["x"], "success": [256]},
        {"argv": ["x"], "permanent": [-1]},
    ],
    ids=repr,
)
def test_an_invalid_command_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError):
        Command(**wrong)


def test_a_command_is_data() -> None:
    command = Command(argv=["x", "{a}"], environment={"A": "{b}"}, retry=[75], result="json", memory_bytes=1)
    assert msgspec.json.decode(msgspec.json.encode(command), type=Command) == command


async def test_a_command_gets_only_inherited_and_declared_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "no")
    monkeypatch.setenv("ALLOWED", "yes")
    monkeypatch.delenv("TZ", raising=False)
    command = Command(
        argv=["env"], environment={"MINE": "<{a}>"}, inherits=["PATH", "ALLOWED", "TZ", "NOT_THERE"], result="text"
    )
    outcome, _ = await attempt(command, deadline=90_500_000, a="x=y")
    assert isinstance(outcome, Succeeded)
    found = dict(line.split("=", 1) for line in msgspec.json.decode(outcome.result).splitlines())
    assert found == {
        "PATH": os.pathsep.join(dict.fromkeys([str(Path(sys.executable).parent), *os.environ["PATH"].split(":")])),
        "ALLOWED": "yes",
        "MINE": "<x=y>",
        "ROTA_EXECUTION_ID": "an-id",
        "ROTA_JOB": "jobs.it",
        "ROTA_ATTEMPT": "3",
        "ROTA_FENCE": "4",
        "ROTA_DEADLINE": "90",
    }


async def test_a_command_runs_in_its_directory_with_empty_standard_input(tmp_path: Path) -> None:
    outcome, _ = await attempt(shell("pwd; cat", directory=str(tmp_path), result="text"))
    assert outcome == Succeeded(msgspec.json.encode(str(tmp_path)).decode())


async def test_a_directory_may_depend_on_an_argument(tmp_path: Path) -> None:
    (tmp_path / "of 7").mkdir()
    outcome, _ = await attempt(shell("pwd", directory=f"{tmp_path}/of {{customer}}", result="text"), customer=7)
    assert outcome == Succeeded(msgspec.json.encode(f"{tmp_path}/of 7").decode())
    failed = await failure(shell("pwd", directory=f"{tmp_path}/of {{customer}}"), customer=8)
    assert f"the directory '{tmp_path}/of 8' cannot be entered" in failed.error.message


@pytest.mark.parametrize("value", ["", ".", "..", "a/b", "/", "../x", "x\0", ["a"], None])
async def test_an_argument_cannot_leave_the_declared_directory(tmp_path: Path, value: Any) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    failed = await failure(shell("true", directory=f"{tmp_path}/{{name}}"), name=value)
    assert (failed.reason, failed.permanent) == (Reason.BAD_ARGUMENTS, True)


# --- How it ends ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "is_permanent"),
    [(0, None), (2, None), (3, True), (75, False), (1, True)],
)
async def test_exit_codes_are_mapped_to_outcomes(code: int, is_permanent: bool | None) -> None:
    command = shell("exit {code}", success=[0, 2], permanent=[3], retry=[75])
    outcome, state = await attempt(command, code=code)
    assert state.usage is not None
    assert state.usage.exit_code == code
    if is_permanent is None:
        assert outcome == Succeeded("null")
    else:
        assert isinstance(outcome, Failed)
        assert (outcome.error.type, outcome.permanent) == ("ExitCode", is_permanent)
        assert outcome.error.message == f"the command ended with exit code {code}"


async def test_all_other_exit_codes_are_retried_by_default() -> None:
    assert not (await failure(shell("exit 1", permanent=[3]))).permanent
    assert (await failure(shell("exit 3", permanent=[3]))).permanent


async def test_the_signal_that_ended_a_command_is_named() -> None:
    outcome, state = await attempt(shell("kill -SEGV $$"))
    assert isinstance(outcome, Failed)
    assert (outcome.error.type, outcome.permanent) == ("Signal", False)
    assert outcome.error.message == "the command was ended by SIGSEGV"
    assert state.usage is not None
    assert (state.usage.exit_code, state.usage.signal) == (None, "SIGSEGV")


async def test_above_the_memory_limit_a_command_fails() -> None:
    program = "import signal; held = b'x' * 90_000_000; signal.pause()"
    outcome, state = await attempt(Command(argv=[sys.executable, "-c", program], memory_bytes=50_000_000))
    assert isinstance(outcome, Failed)
    assert (outcome.error.type, outcome.permanent) == ("OutOfMemory", False)
    assert "50,000,000" in outcome.error.message
    assert state.usage is not None
    assert state.usage.peak_bytes > 50_000_000


async def test_an_attempt_reports_its_processor_time_and_memory() -> None:
    _, state = await attempt(Command(argv=[sys.executable, "-c", "sum(range(1_000_000))"]))
    assert state.usage is not None
    assert state.usage.cpu_s > 0
    assert state.usage.peak_bytes > 1_000_000


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (Command(argv=["no-such-program"]), "'no-such-program' cannot be started: No such file"),
        (Command(argv=[__file__]), "cannot be started: Permission denied"),
        (Command(argv=["true"], directory="/no/such"), "the directory '/no/such' cannot be entered: No such file"),
    ],
    ids=lambda value: "",
)
async def test_a_command_that_cannot_be_started_fails_without_a_retry_and_says_why(
    command: Command, words: str
) -> None:
    failed = await failure(command)
    assert (failed.error.type, failed.permanent) == ("NotStarted", True)
    assert words in failed.error.message


async def test_a_command_counts_no_attempt_if_no_descriptor_is_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(flags: int) -> tuple[int, int]:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pipe2", fail)
        claim = claim_of({})
        outcome = await CommandExecutor(Command(argv=["true"])).run(claim, AttemptState(claim, None))
    assert isinstance(outcome, GivenBack)
    assert outcome.delay_s
    assert outcome.error is not None
    assert "Too many open files" in outcome.error.message


@pytest.mark.parametrize("is_suspect", [False, True])
async def test_when_the_spawner_dies_the_attempt_is_lost_and_the_next_works(tmp_path: Path, is_suspect: bool) -> None:
    claim, ready = msgspec.structs.replace(claim_of({}), is_suspect=is_suspect), tmp_path / "ready"
    executor = CommandExecutor(shell(f"echo $PPID > {ready}.new; mv {ready}.new {ready}; exec sleep 1000"))
    task = asyncio.ensure_future(executor.run(claim, AttemptState(claim, None)))
    await asyncio.to_thread(eventually, ready.exists)
    pid = int(ready.read_text())
    assert (pid == spawner.shared().pid) is not is_suspect, "a suspect has one of its own"
    os.kill(pid, signal.SIGKILL)
    outcome = await task
    assert isinstance(outcome, Lost)
    assert outcome.shared is not is_suspect
    assert "spawner" in outcome.error.message
    assert await result("echo", "again") == "again"


async def test_an_attempt_is_lost_if_the_spawner_dies_before_it_answers() -> None:
    spawner.shared().start()
    pid = spawner.shared().pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    claim = claim_of({})
    task = asyncio.ensure_future(CommandExecutor(Command(argv=["true"])).run(claim, AttemptState(claim, None)))
    await asyncio.sleep(0)
    os.kill(pid, signal.SIGKILL)
    outcome = await task
    assert isinstance(outcome, Lost)
    assert outcome.shared


async def test_the_spawner_of_a_suspect_ends_with_the_suspect() -> None:
    claim = msgspec.structs.replace(claim_of({}), is_suspect=True)
    executor = CommandExecutor(Command(argv=["sh", "-c", "echo $PPID"], result="text"))
    outcome = await executor.run(claim, AttemptState(claim, None))
    assert isinstance(outcome, Succeeded)
    pid = int(msgspec.json.decode(outcome.result))
    await asyncio.to_thread(eventually, lambda: process_tree.read(pid) is None)


# --- What it writes -------------------------------------------------------------------------------


async def test_lines_come_in_order_and_the_last_ones_of_both_outputs_explain_a_failure() -> None:
    outcome, state = await attempt(shell("for n in 1 2 3; do echo out $n; echo err $n >&2; done; printf rest; exit 1"))
    assert [text for stream, text in state.lines if stream == "stdout"] == ["out 1", "out 2", "out 3", "rest"]
    assert [text for stream, text in state.lines if stream == "stderr"] == ["err 1", "err 2", "err 3"]
    assert isinstance(outcome, Failed)
    said = "--- stdout\nout 1\nout 2\nout 3\nrest\n--- stderr\nerr 1\nerr 2\nerr 3"
    assert outcome.error.traceback == said


async def test_without_standard_error_the_end_of_standard_output_explains_a_failure() -> None:
    failed = await failure(shell("seq 1 100; exit 1"))
    assert failed.error.traceback == "\n".join(map(str, range(51, 101)))
    failed = await failure(shell("for n in 1 2 3 4; do head -c 6000 /dev/zero | tr '\\0' $n; echo; done; exit 1"))
    assert failed.error.traceback[0] == "3"
    assert len(failed.error.traceback) < MOST_LAST


async def test_much_standard_output_does_not_hide_standard_error() -> None:
    failed = await failure(shell("seq 1 9; seq 10000 20000 >&2; echo last >&2; exit 1"))
    assert failed.error.traceback.startswith("--- stdout\n1\n")
    assert failed.error.traceback.endswith("\nlast")
    assert "\n--- stderr\n" in failed.error.traceback
    failed = await failure(
        shell("for n in 1 2 3; do head -c 6000 /dev/zero | tr '\\0' $n | tee /dev/stderr; echo; echo >&2; done; exit 1")
    )
    assert failed.error.traceback.count("3") == 2 * 6000
    assert len(failed.error.traceback) < MOST_LAST + 100


async def test_long_lines_are_cut_and_broken_text_is_replaced() -> None:
    _, state = await attempt(shell(r"head -c 20000 /dev/zero | tr '\0' x; echo y; printf 'a\377b\r\n'; echo z"))
    assert [text for _, text in state.lines] == ["x" * MOST_LINE + "…", "a\ufffdb", "z"]


async def test_a_command_may_close_its_output_and_keep_running() -> None:
    outcome, state = await attempt(shell("echo a; exec >&-; echo b >&2; exec 2>&-; exit 5"))
    assert isinstance(outcome, Failed)
    assert outcome.error.message == "the command ended with exit code 5"
    assert sorted(state.lines) == [("stderr", "b"), ("stdout", "a")]


@pytest.mark.parametrize(
    ("result", "separator"), [("none", "| fold -w 99"), ("json", ""), ("text", "")], ids=["many lines", "json", "text"]
)
async def test_a_hundred_megabytes_of_output_neither_block_a_command_nor_stay_in_memory(
    result: Any, separator: str
) -> None:
    before = own_bytes()
    script = f"head -c 100000000 /dev/zero | tr '\\0' x {separator} | tee /dev/stderr"
    outcome, state = await attempt(shell(script, result=result))
    assert state.count >= 2
    assert max(state.most_bytes, own_bytes()) < before + 40_000_000
    if result == "none":
        assert outcome == Succeeded()
    else:
        assert isinstance(outcome, Failed)
        assert (outcome.reason, outcome.permanent) == (Reason.BAD_RESULT, True)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo working; echo '{{\"a\": [1, null]}}'", '{"a":[1,null]}'),
        ("echo 1; printf 2", "2"),
        ("echo 3; echo; echo '  '", "3"),
        ("head -c 300000 /dev/zero | tr '\\0' 1 | sed 's/^/\"/; s/$/\"/'", '"' + "1" * 300_000 + '"'),
    ],
    ids=["object", "no line end", "empty lines after it", "a long line"],
)
async def test_the_last_line_may_be_the_result(script: str, expected: str) -> None:
    outcome, _ = await attempt(shell(script, result="json"))
    assert outcome == Succeeded(expected)


@pytest.mark.parametrize("script", ["", "echo '{{'", "echo 1; echo no", r"printf '\"\\\\u0000\"'"])
async def test_a_last_line_that_is_not_json_fails_without_a_retry(script: str) -> None:
    failed = await failure(shell(script or ":", result="json"))
    assert (failed.error.type, failed.reason, failed.permanent) == ("ResultError", Reason.BAD_RESULT, True)


# --- When it must stop ----------------------------------------------------------------------------


async def test_a_cancelled_attempt_ends_when_its_whole_process_tree_has_ended(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    command = Command(argv=[sys.executable, FAMILY, str(file), "stay"], grace_s=0.2)
    claim = claim_of({})
    state = AttemptState(claim, None)
    task = asyncio.ensure_future(CommandExecutor(command).run(claim, state))
    await asyncio.to_thread(eventually, file.exists)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()  # A second cancel does not end it earlier.
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [pid for pid in file.read_text().split() if process_tree.read(int(pid))] == []
    assert state.usage is not None
    assert state.usage.signal == "SIGKILL"


async def test_a_command_may_use_its_grace(tmp_path: Path) -> None:
    ready, said = tmp_path / "ready", tmp_path / "said"
    lines = [
        "import pathlib, signal, sys",
        f"signal.signal(signal.SIGTERM, lambda *_: (pathlib.Path({str(said)!r}).write_text('bye'), sys.exit(0)))",
        f"pathlib.Path({str(ready)!r}).touch()",
        "while True: signal.pause()",
    ]
    claim = claim_of({})
    state = AttemptState(claim, None)
    program = [sys.executable, "-c", "\n".join(lines)]
    executor = CommandExecutor(
        Command(argv=[part.replace("{", "{{").replace("}", "}}") for part in program], grace_s=30)
    )
    assert executor.grace_s > 30
    task = asyncio.ensure_future(executor.run(claim, state))
    await asyncio.to_thread(eventually, ready.exists)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert said.read_text() == "bye"
    assert state.usage is not None
    assert state.usage.exit_code == 0


async def test_an_abandoned_command_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    executor = CommandExecutor(Command(argv=[sys.executable, FAMILY, str(file), "stay"]))
    executor.abandon()  # Nothing runs yet, so nothing happens.
    claim = claim_of({})
    task = asyncio.ensure_future(executor.run(claim, AttemptState(claim, None)))
    await asyncio.to_thread(eventually, file.exists)
    on = spawner.shared()
    executor.abandon()
    assert isinstance(await task, Lost)
    await on.closed()
    assert [pid for pid in file.read_text().split() if process_tree.read(int(pid))] == []


async def test_concurrent_commands_do_not_mix_their_output() -> None:
    outputs = await asyncio.gather(*(result("echo", "{n}", n=n) for n in range(200)))
    assert outputs == [str(n) for n in range(200)]
