from pathlib import Path

import pytest

from playhead_cli.running.agent import recorded_environment
from playhead_cli.session.configuration import for_children, resolved_settings, user_config
from playhead_core.errors import ConfigurationError
from playhead_core.settings import Settings
from playhead_receiver.system.defaults import data_dir


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(tmp_path / "config")}


def test_the_nearest_project_file_wins_over_the_users(tmp_path: Path, environ: dict[str, str]):
    write(tmp_path / "pyproject.toml", '[tool.playhead]\nagent = "far"\n')
    project = write(tmp_path / "a" / "pyproject.toml", '[tool.playhead]\nagent = "near"\n')
    own = write(user_config(environ), 'agent = "own"\nlevel = "causal"\n')
    (tmp_path / "a" / "b").mkdir()
    found = resolved_settings(environ, cwd=tmp_path / "a" / "b")
    assert (found.settings.agent, found.settings.level) == ("near", "causal")
    assert found.origins["agent"] == str(project)
    assert found.origins["level"] == str(own)
    assert found.origins["protocol"] == "default"


def test_environment_and_flags_win_over_files(tmp_path: Path, environ: dict[str, str]):
    write(tmp_path / "pyproject.toml", '[tool.playhead]\nagent = "file"\nlevel = "causal"\n')
    found = resolved_settings(
        {**environ, "PLAYHEAD_AGENT": "environment", "PLAYHEAD_LEVEL": "exchanges"},
        flags={"level": "strict"},
        cwd=tmp_path,
    )
    assert (found.settings.agent, found.settings.level) == ("environment", "strict")


def test_one_file_may_be_named_or_none_at_all(tmp_path: Path, environ: dict[str, str]):
    write(tmp_path / "pyproject.toml", '[tool.playhead]\nagent = "file"\n')
    named = write(tmp_path / "other.toml", 'agent = "named"\n')
    assert resolved_settings(environ, config=named, cwd=tmp_path).settings.agent == "named"
    assert resolved_settings(environ, no_config=True, cwd=tmp_path).settings.agent == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("agnt = 1\n", "unknown setting agnt in"),
        ("token = 'x'\n", "a token does not belong in"),
        ("agent = \n", "cannot be read"),
        ("heartbeat-ms = 'soon'\n", "not a whole number"),
    ],
)
def test_a_mistake_in_a_file_is_named(tmp_path: Path, environ: dict[str, str], text: str, said: str):
    path = write(tmp_path / "c.toml", text)
    with pytest.raises(ConfigurationError, match=said) as raised:
        resolved_settings(environ, config=path, cwd=tmp_path)
    assert str(path) in raised.value.what


def test_children_get_what_they_do_not_inherit(tmp_path: Path, environ: dict[str, str]):
    write(tmp_path / "pyproject.toml", '[tool.playhead]\nagent = "file"\nquiet = true\n')
    found = resolved_settings(
        {**environ, "PLAYHEAD_LEVEL": "causal"}, flags={"heartbeat_ms": 100}, cwd=tmp_path
    )
    assert for_children(found) == {
        "PLAYHEAD_AGENT": "file",
        "PLAYHEAD_QUIET": "true",
        "PLAYHEAD_HEARTBEAT_MS": "100",
    }


def test_the_data_folder_is_the_users_unless_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert data_dir(Settings()) == tmp_path / "playhead"
    assert data_dir(Settings(data_dir=str(tmp_path / "d"))) == tmp_path / "d"


def test_an_agent_is_not_told_the_way_into_the_database(tmp_path: Path, environ: dict[str, str]):
    """Neither by a flag nor by a file; what its user put into the environment stays as it is."""
    url = "postgresql://bob:secret@db/runs"
    write(tmp_path / "pyproject.toml", f'[tool.playhead]\nstore = "{url}"\n')
    for flags in ({}, {"store": url}):
        found = resolved_settings(environ, flags=flags, cwd=tmp_path)
        assert found.settings.store == url
        assert "PLAYHEAD_STORE" not in recorded_environment(environ, found, None)
    own = {**environ, "PLAYHEAD_STORE": url}
    found = resolved_settings(own, cwd=tmp_path)
    assert recorded_environment(own, found, None)["PLAYHEAD_STORE"] == url
