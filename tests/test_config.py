"""Settings: where they come from, which one wins, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rota import config
from rota.config import Settings
from rota.domain.errors import DefinitionError


def test_settings_have_their_defaults(tmp_path: Path) -> None:
    assert config.load({}, tmp_path) == Settings()


def test_the_environment_wins_over_the_file_and_the_caller_over_both(tmp_path: Path) -> None:
    (tmp_path / "rota.toml").write_text('lease_s = 5\nconcurrency = 7\nurl = "sqlite:///file.db"\n')
    environment = {"ROTA_CONCURRENCY": "8", "ROTA_URL": "sqlite:///env.db", "ROTA_UNKNOWN": "x", "HOME": "y"}
    settings = config.load(environment, tmp_path, url="sqlite:///given.db", namespace=None)
    assert settings == Settings(lease_s=5.0, concurrency=8, url="sqlite:///given.db")


def test_an_unknown_variable_is_reported_with_the_most_similar_setting() -> None:
    ours = {"ROTA_CONCURRENCY": "3", "ROTA_HTTP_ALLOW": "x", "ROTA_FENCE": "1", "ROTA_TEST_X": "1", "ROTATE": "1"}
    assert config.unknown_variables(ours) == {}
    assert config.unknown_variables({**ours, "ROTA_CONCURENCY": "3", "ROTA_COLOUR": "red"}) == {
        "ROTA_COLOUR": "",
        "ROTA_CONCURENCY": "ROTA_CONCURRENCY",
    }


def test_the_error_shows_bounds_as_whole_numbers(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="must be between 1,024 and 67,108,864, not 100"):
        config.load({"ROTA_MAX_PAYLOAD_BYTES": "100"}, tmp_path)


def test_lists_are_separated_by_commas_in_the_environment(tmp_path: Path) -> None:
    (tmp_path / "rota.toml").write_text('allowed_hosts = ["a.example"]\n')
    found = config.load({"ROTA_CORS_ORIGINS": "https://a.example, http://localhost:3000"}, tmp_path)
    assert found.allowed_hosts == ("a.example",)
    assert found.cors_origins == ("https://a.example", "http://localhost:3000")


@pytest.mark.parametrize("origin", ["*", "null", "a.example", "https://a.example/", "https://A.example", "ftp://a"])
def test_an_origin_has_a_scheme_and_a_host_and_nothing_else(tmp_path: Path, origin: str) -> None:
    for name in ("ROTA_CORS_ORIGINS", "ROTA_PUBLIC_URL"):
        with pytest.raises(DefinitionError, match="an origin in lower case"):
            config.load({name: origin}, tmp_path)


def test_an_empty_variable_is_ignored(tmp_path: Path) -> None:
    assert config.load({"ROTA_LEASE_S": ""}, tmp_path) == Settings()


@pytest.mark.parametrize("field", sorted(config._BOUNDS))
@pytest.mark.parametrize("end", [0, 1])
def test_values_at_the_bounds_are_accepted_and_beyond_them_refused(tmp_path: Path, field: str, end: int) -> None:
    bound = config._BOUNDS[field][end]
    edge = type(getattr(Settings(), field))(bound)
    assert getattr(config.load({}, tmp_path, **{field: edge}), field) == bound
    beyond = edge - 1 if end == 0 else edge + 1
    with pytest.raises(DefinitionError, match=f"the setting {field} must be between"):
        config.load({}, tmp_path, **{field: beyond})


def test_every_number_has_a_bound() -> None:
    numbers = {name for name in Settings.__struct_fields__ if isinstance(getattr(Settings(), name), int | float)}
    assert numbers == set(config._BOUNDS)


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("lease_s", "soon"),
        ("lease_s", "nan"),
        ("lease_s", "inf"),
        ("concurrency", "2.5"),
        ("concurrency", "many"),
        ("processes", "-1"),
        ("processes", "0"),
        ("max_payload_bytes", "1e400"),
        ("namespace", "no spaces"),
        ("poll_s", "-1"),
    ],
)
def test_a_bad_variable_is_refused_by_name(tmp_path: Path, field: str, text: str) -> None:
    with pytest.raises(DefinitionError, match=field):
        config.load({f"ROTA_{field.upper()}": text}, tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"lease_s = ", "not valid TOML"),
        (b"\xff\xfe", "not valid TOML"),
        (b"leese_s = 5", "leese_s"),
        (b"lease_s = []", "lease_s"),
        (b"url = 5", "url"),
        (b"[lease_s]\nx = 1", "lease_s"),
        (b"lease_s = 0", "lease_s"),
    ],
)
def test_the_error_of_a_bad_file_says_what_is_wrong(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "rota.toml").write_bytes(content)
    with pytest.raises(DefinitionError, match=message):
        config.load({}, tmp_path)


def test_an_unknown_setting_given_by_code_is_refused(tmp_path: Path) -> None:
    unknown: dict[str, Any] = {"colour": "red"}
    with pytest.raises(DefinitionError, match="colour"):
        config.load({}, tmp_path, **unknown)


def test_a_folder_with_the_name_of_the_file_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "rota.toml").mkdir()
    assert config.load({}, tmp_path) == Settings()
