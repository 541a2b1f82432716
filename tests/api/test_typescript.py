"""A client in TypeScript, which openapi-typescript makes from the served document, against a real server.

It shows that the document is right for a generator that knows nothing of Rota: the client is compiled strictly.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.api.process import server_process

SOURCE = Path(__file__).parents[1] / "typescript"
LOCK = SOURCE / "package-lock.json"
PATIENCE_S = 100


@pytest.fixture(scope="module")
def modules() -> Path:
    """The locked packages, which are installed again only when the lock file changed."""
    found = SOURCE / "node_modules"
    stamp = found / ".installed"
    if not stamp.is_file() or stamp.read_bytes() != LOCK.read_bytes():
        run(SOURCE, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
        shutil.copy(LOCK, stamp)
    return found


@pytest.fixture(scope="module")
def client(modules: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the compiled client; its types are of the document that a server has served."""
    folder = tmp_path_factory.mktemp("typescript")
    for name in ("client.ts", "package.json", "tsconfig.json"):
        shutil.copy(SOURCE / name, folder)
    (folder / "node_modules").symlink_to(modules)
    with server_process(folder, f"sqlite:///{folder}/rota.db") as server:
        served = httpx.get(f"{server.url}/api/v1/openapi.json", timeout=30)
    (folder / "openapi.json").write_bytes(served.content)
    run(folder, "node", str(modules / ".bin" / "openapi-typescript"), "openapi.json", "-o", "schema.d.ts")
    run(folder, "node", str(modules / ".bin" / "tsc"))
    return folder


@pytest.mark.prove
@pytest.mark.xdist_group("typescript")  # One process installs the packages and compiles the client, for both databases.
@pytest.mark.timeout(300)
def test_a_generated_client_does_the_three_calls_a_list_a_stream_and_an_upload(
    client: Path, url: str, tmp_path: Path
) -> None:
    with server_process(tmp_path, url) as server:
        assert run(client, "node", "build/client.js", server.url) == "all calls succeeded\n"


def run(folder: Path, *command: str) -> str:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    except FileNotFoundError:
        pytest.fail(f"{command[0]} was not found: the tests need Node.js 20 or newer")
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout
