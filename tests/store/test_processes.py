"""Many processes on one file: no call fails because the file is locked, and no accepted execution is missing."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path

from tests.store.running import finish, ids, line, program, run, start

WRITERS, EACH = 8, 150


def test_eight_writers_and_two_readers_share_a_file_and_no_execution_is_missing(path: Path) -> None:
    with contextlib.ExitStack() as stack:
        writers = [stack.enter_context(program("write", path, EACH)) for _ in range(WRITERS)]
        readers = [stack.enter_context(program("read", path)) for _ in range(2)]
        for writer in writers:
            start(writer)
        accepted = [id for writer in writers for id in finish(writer)]
        looks = [finish(reader)[0].split() for reader in readers]
    assert len(set(accepted)) == WRITERS * EACH
    assert ids(path) == set(accepted)
    assert all(int(count) > 0 for count, _ in looks)


def test_accepted_executions_survive_the_kill_of_their_writer(path: Path) -> None:
    accepted: set[str] = set()
    for _ in range(3):
        with program("write_for_ever", path) as writer:
            accepted.update(line(writer) for _ in range(200))
            writer.send_signal(signal.SIGKILL)
            assert writer.stdout is not None
            # The last line may have been cut off in the middle of its writing.
            accepted.update(rest for rest in writer.stdout.read().splitlines() if len(rest) == 36)
            assert writer.wait(30) == -signal.SIGKILL
        assert accepted <= ids(path)
    assert len(accepted) >= 600


def test_killed_writers_do_not_block_the_others(path: Path) -> None:
    with program("write_for_ever", path) as one, program("write_for_ever", path) as other:
        for _ in range(100):
            assert line(one)
        one.send_signal(signal.SIGKILL)
        assert one.wait(30) == -signal.SIGKILL
        seen = {line(other) for _ in range(100)}
    assert len(seen) == 100
    assert seen <= ids(path)


def test_an_app_that_was_used_before_a_fork_works_on_both_sides(path: Path) -> None:
    accepted = run("fork", path)
    assert len(set(accepted)) == 82
    assert ids(path) == set(accepted)


def test_a_forked_child_keeps_what_it_accepted_when_its_parent_closes(path: Path) -> None:
    accepted = run("fork_and_leave", path)
    assert len(accepted) == 3
    assert ids(path) == set(accepted)


def test_a_fork_during_writes_does_not_inherit_a_held_lock(path: Path) -> None:
    accepted = set(run("fork_while_writing", path))
    assert accepted <= ids(path)
