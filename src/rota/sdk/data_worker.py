"""The jobs of a worker without code: every command and request of its namespace that the HTTP API has defined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.config import Settings
from rota.domain.served import ALL_APPS, COMMANDS, REQUESTS
from rota.executors import kinds
from rota.executors.data_jobs import FromDefinitions
from rota.executors.port import Executor
from rota.sdk.registry import Registry

if TYPE_CHECKING:
    from rota.executors.process.pool import Pool

_SAMPLES: dict[str, dict[str, Any]] = {
    COMMANDS: {"kind": kinds.COMMAND, "argv": ["true"]},
    REQUESTS: {"kind": kinds.HTTP, "url": "https://example.com/"},
}


class DataRegistry(Registry):
    """A registry that declares nothing. The definitions of its jobs come with their claims."""

    def __init__(self, settings: Settings, directory: str | None = None) -> None:
        super().__init__(ALL_APPS, settings)
        most = settings.max_result_bytes
        self._made = {name: FromDefinitions(sample, most, directory) for name, sample in _SAMPLES.items()}

    def targets(self, pool: Pool | None = None) -> dict[str, Executor]:
        return {name: made for name, made in self._made.items() if not made.missing}

    def unavailable(self) -> dict[str, str]:
        return {name: made.missing for name, made in self._made.items() if made.missing}
