"""Small programs that the tests of the SQLite store run in processes of their own: `python -m tests.store.programs`.

They print what was acknowledged, line by line and unbuffered, so that a test knows what must be in the file whatever
happens to the process afterwards.
"""

from __future__ import annotations

import itertools
import os
import resource
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from rota import App, StoreError
from rota.clock import SystemClock
from rota.ids import FIRST_ID, LAST_ID
from rota.sdk.app import registry_of
from rota.store import migrate, reader
from rota.store.hints import Ended, Ready
from rota.store.sqlite.bus import SqliteBus
from rota.store.sqlite.store import SqliteStore

UNPRIVILEGED_UID = 65534


def say(*words: object) -> None:
    os.write(1, (" ".join(str(word) for word in words) + "\n").encode())


def shop(path: str) -> App:
    app = App("shop", url=f"sqlite:///{path}")
    app.job(name="send")(lambda n: n)
    return app


def write(path: str, count: str) -> None:
    """Enqueues one by one, and says the id of each once it is accepted."""
    app = shop(path)
    sys.stdin.readline()
    for number in range(int(count)):
        say(app.jobs["send"].enqueue(number).id)
    app.close()


def write_for_ever(path: str) -> None:
    """Several threads that enqueue until the process is killed, so that commits carry several each."""
    app = shop(path)
    registry_of(app).connection.store()

    def enqueue() -> None:
        for number in itertools.count():
            say(app.jobs["send"].enqueue(number).id)

    threads = [threading.Thread(target=enqueue) for _ in range(4)]
    for thread in threads:
        thread.start()


def read(path: str) -> None:
    """Reads everything again and again until its input ends; prints how often, and the last count."""
    app = shop(path)
    store = registry_of(app).connection.store()
    looks = seen = 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        rows = store.read(reader.ids_between, "default", FIRST_ID, LAST_ID, 1_000_000)
        assert len(rows) >= seen, "an accepted execution disappeared"
        seen = len(rows)
        looks += 1
    say(looks, seen)
    app.close()


def open_fresh(path: str) -> None:
    say("here")
    sys.stdin.readline()
    SqliteStore(f"sqlite:///{path}").close()
    say("opened")


def migrate_and_die(path: str, after: str) -> None:
    """Is killed in the middle of the first migration, after so many statements."""
    whole = migrate._split

    def dying(script: str) -> Iterator[str]:
        yield from whole(script)[: int(after)]
        os.kill(os.getpid(), signal.SIGKILL)

    migrate._split = dying  # type: ignore[assignment]
    SqliteStore(f"sqlite:///{path}")


def listen(path: str) -> None:
    bus = SqliteBus(path, SystemClock())
    listener = bus.listen(Ready, Ended)
    say("listening")
    while True:
        select.select([listener.fileno()], [], [])
        for hint in listener.take():
            say(hint)


def fill(path: str, most_bytes: str) -> None:
    """Fills the disk, or the file up to its size limit; frees space; and continues."""
    app = shop(path)
    say("accepted", app.jobs["send"].enqueue(0).id)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(most_bytes), resource.RLIM_INFINITY))
    for _ in range(10_000):
        try:
            say("accepted", app.jobs["send"].enqueue("x" * 10_000).id)
        except StoreError as error:
            say("refused", type(error).__name__, error)
            break
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    for number in range(5):
        say("accepted", app.jobs["send"].enqueue(number).id)
    app.close()


def open_without_rights(path: str, beside: str = "") -> None:
    """Opens a file that may only be read, or one with such a file beside it."""
    if beside:
        Path(beside).touch()
        for each in Path(path).parent.iterdir():
            each.chmod(0o777 if each.is_dir() else 0o666)
    Path(beside or path).chmod(0o444)
    Path(path).parent.chmod(0o777 if beside else 0o555)
    shop(":memory:").jobs["send"].enqueue(0)  # Whatever that imports, we import as ourselves.
    app = shop(path)
    if os.geteuid() == 0:
        os.setuid(UNPRIVILEGED_UID)
    try:
        app.jobs["send"].enqueue(0)
    except StoreError as error:
        say(type(error).__name__, error)


def fork(path: str) -> None:
    """Enqueues, forks, and enqueues on both sides."""
    app = shop(path)
    send = app.jobs["send"]
    say(send.enqueue(0).id)
    children = []
    for child in range(3):
        pid = os.fork()
        if pid == 0:
            for number in range(20):
                say(send.enqueue(child * 100 + number).id)
            app.close()
            os._exit(0)
        children.append(pid)
    for number in range(20):
        say(send.enqueue(1000 + number).id)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    say(send.enqueue(0).id)
    app.close()
    assert codes == [0, 0, 0]


def fork_and_leave(path: str) -> None:
    """The parent closes its database while a forked child keeps using its own."""
    app = shop(path)
    send = app.jobs["send"]
    say(send.enqueue(0).id)
    (told, tell), (heard, hear) = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        say(send.enqueue(1).id)
        os.write(tell, b"x")
        os.read(heard, 1)
        say(send.enqueue(2).id)
        os._exit(0)
    os.read(told, 1)
    app.close()
    os.write(hear, b"x")
    os.waitpid(pid, 0)


def fork_while_writing(path: str) -> None:
    """Forks again and again while threads of the parent write."""
    app = shop(path)
    send = app.jobs["send"]
    send.enqueue(0)
    done = threading.Event()

    def enqueue() -> None:
        while not done.is_set():
            say(send.enqueue(1).id)

    threads = [threading.Thread(target=enqueue) for _ in range(4)]
    for thread in threads:
        thread.start()
    codes = []
    for _ in range(10):
        pid = os.fork()
        if pid == 0:
            say(send.enqueue(2).id)
            os._exit(0)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    done.set()
    for thread in threads:
        thread.join()
    app.close()
    assert codes == [0] * 10


PROGRAMS: dict[str, Callable[..., None]] = {
    program.__name__: program
    for program in (
        write,
        write_for_ever,
        read,
        open_fresh,
        migrate_and_die,
        listen,
        fill,
        open_without_rights,
        fork,
        fork_and_leave,
        fork_while_writing,
    )
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
