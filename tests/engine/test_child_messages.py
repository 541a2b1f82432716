"""The pipe for messages of a child to its supervisor: user code in the child can write to it as well."""

from __future__ import annotations

import asyncio
import sys

from rota.engine.process import ChildProcess
from tests.support.waiting import PATIENCE_S

PROGRAM = """
import os, sys
fd = int(sys.argv[sys.argv.index("--words-fd") + 1])
for words in (b'{"app": "a"}', b"x" * 300_000, b"", b"leaving"):
    while words:
        words = words[os.write(fd, words):]
    os.write(fd, b"\\n")
sys.stdin.read()
"""


async def test_a_long_line_from_a_job_is_not_read_as_a_message_of_the_child() -> None:
    """A supervisor starts a new process for each child that announces that it leaves."""
    child = await ChildProcess.spawn([sys.executable, "-c", PROGRAM])
    try:
        hello = await asyncio.wait_for(child.hello(), PATIENCE_S)
        assert hello is not None
        assert hello.app == "a"
        await asyncio.wait_for(child.leaving(), PATIENCE_S)
    finally:
        child.kill()
        await child.wait()
        child.close()
