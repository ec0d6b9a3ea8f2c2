"""`playhead demo --keep`: a provider that stays up, and that programs of its folder find."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from support.servers import ports

from playhead_cli.demo import Stage
from playhead_cli.demo import __main__ as kept_process
from playhead_cli.demo.keeping import examples_here, freed_port, keep, stop
from playhead_cli.demo.provider import Provider
from playhead_cli.demo.shell import agents_dir
from playhead_cli.running.kept_provider import FILE, KeptProvider, found_by, variables
from playhead_core.errors import PlayheadError, UsageError

SHOWS = "import json, os\nprint(json.dumps(dict(os.environ)))\n"


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "data"
    yield folder
    stop(folder)


@pytest.fixture
def kept(tmp_path: Path, data_dir: Path) -> KeptProvider:
    """One at a port that is nobody else's when it has ended."""
    return started(data_dir, examples_here(tmp_path), ports.free())


def started(data_dir: Path, examples: Path, port: int) -> KeptProvider:
    return keep(data_dir, Stage(dict(os.environ), examples, port))


def process_of(kept: KeptProvider) -> psutil.Process:
    """The process that listens at its port."""
    (found,) = [
        one.pid
        for one in psutil.net_connections("tcp")
        if one.status == "LISTEN" and one.laddr.port == kept.port
    ]
    return psutil.Process(found)


def playhead(data_dir: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    bare = {
        name: value
        for name, value in os.environ.items()
        if name not in variables("") and not name.startswith(("PLAYHEAD_", "OTEL_"))
    }
    return subprocess.run(
        [sys.executable, "-m", "playhead_cli", *words],
        cwd=data_dir.parent,
        env={**bare, "PLAYHEAD_DATA_DIR": str(data_dir), "VIRTUAL_ENV": "", **environ},
        capture_output=True,
        text=True,
        timeout=150,
    )


def test_its_file_is_private_and_names_it(kept: KeptProvider, data_dir: Path):
    assert stat.S_IMODE((data_dir / FILE).stat().st_mode) == 0o600
    assert KeptProvider.read(data_dir) == kept
    assert kept.answers()
    words = process_of(kept).cmdline()
    assert not [word for word in words if kept.key in word]


def test_the_agents_are_there_as_they_are_bundled(kept: KeptProvider):
    there = {path.name: path.read_bytes() for path in Path(kept.examples).iterdir()}
    assert there == {path.name: path.read_bytes() for path in agents_dir().glob("*.py")}


def test_a_recorded_program_of_the_folder_finds_it(kept: KeptProvider, data_dir: Path):
    (Path(kept.examples) / "shows.py").write_text(SHOWS)
    done = playhead(data_dir, "record", "examples/shows.py")
    said = json.loads(done.stdout)
    expected = variables(kept.url)
    assert {name: said.get(name) for name in expected} == expected
    assert "the demo's provider; to stop it" in done.stderr


def test_a_key_is_not_spent_and_another_address_is_kept(kept: KeptProvider, data_dir: Path):
    words, base = ["examples/weather_agent.py"], Path(kept.examples).parent
    assert found_by(words, base, {"OPENAI_API_KEY": "mine"}, data_dir) == variables(kept.url)
    (base / "examples" / "shows.py").write_text(SHOWS)
    mine = {"OPENAI_API_KEY": "mine", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
    done = playhead(data_dir, "record", "examples/shows.py", **mine)
    said = json.loads(done.stdout)
    assert {name: said[name] for name in variables(kept.url) if name in said} == mine
    assert "provider" not in done.stderr


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["examples/weather_agent.py", "Lima"], True),
        (["-m", "uvicorn", "--app-dir", "examples", "service:app"], True),
        (["./examples/../examples/weather_agent.py"], True),
        (["elsewhere/weather_agent.py"], False),
        (["examples/gone.py"], False),
        (["examples-of-mine/weather_agent.py"], False),
        (["weather_agent.py", ""], False),
    ],
)
def test_programs_elsewhere_do_not_find_it(kept: KeptProvider, words: list[str], found: bool):
    base = Path(kept.examples).parent
    for other in ("elsewhere", "examples-of-mine"):
        (base / other).mkdir()
        (base / other / "weather_agent.py").touch()
    assert kept.is_for(words, base) == found


def test_one_that_was_killed_is_not_found_and_its_port_is_taken_again(
    kept: KeptProvider, data_dir: Path
):
    words, base = ["examples/weather_agent.py"], Path(kept.examples).parent
    assert found_by(words, base, {}, data_dir) == variables(kept.url)
    process = process_of(kept)
    process.kill()
    process.wait(60)
    assert found_by(words, base, {}, data_dir) == {}
    assert "playhead demo --keep" in playhead(data_dir, "demo", "--env").stderr
    again = started(data_dir, Path(kept.examples), freed_port(data_dir))
    assert again.port == kept.port and again.key != kept.key
    assert not kept.answers() and again.answers()


def test_somebody_else_at_its_port_is_not_taken_for_it(kept: KeptProvider, data_dir: Path):
    process = process_of(kept)
    process.kill()
    process.wait(60)
    with Provider(kept.port, key="another") as stranger:
        assert not kept.answers()
        assert found_by(["examples/weather_agent.py"], Path(kept.examples).parent, {}, data_dir) == {}
        assert freed_port(data_dir) != kept.port
        assert not (data_dir / FILE).exists()
        assert stranger.requests == 0


def test_it_ends_when_asked_and_leaves_nothing(kept: KeptProvider, data_dir: Path):
    process = process_of(kept)
    shown = playhead(data_dir, "demo", "--env").stdout
    assert shown.splitlines() == [f"export {name}={v}" for name, v in variables(kept.url).items()]
    assert "was stopped" in playhead(data_dir, "demo", "--stop").stderr
    process.wait(60)
    assert not (data_dir / FILE).exists()
    assert "none was running" in playhead(data_dir, "demo", "--stop").stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_and_removes_its_file(kept: KeptProvider, data_dir: Path, number: int):
    process = process_of(kept)
    process.send_signal(number)
    process.wait(60)
    assert not (data_dir / FILE).exists()


def test_it_ends_when_nobody_asks_and_when_its_file_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(kept_process, "LOOKS_EVERY_S", 0)
    with Provider(key="k") as provider:
        mine = KeptProvider(provider.port, "k", str(tmp_path))
        kept_process._serve_until_over(provider, mine, tmp_path)
        (tmp_path / FILE).write_bytes(mine.content())
        kept_process._serve_until_over(provider, mine, tmp_path)


def test_a_folder_of_that_name_with_other_things_is_left_alone(tmp_path: Path):
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "mine.txt").write_text("mine")
    with pytest.raises(UsageError):
        examples_here(tmp_path)
    assert [path.name for path in (tmp_path / "examples").iterdir()] == ["mine.txt"]


def test_where_it_cannot_write_it_says_why(tmp_path: Path):
    (tmp_path / "data").write_text("a file")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PlayheadError) as refused:
            keep(tmp_path / "data", Stage({}, tmp_path, port))
    assert "in use" in str(refused.value.cause)
    with pytest.raises(PlayheadError) as refused:
        keep(tmp_path / "data", Stage({}, tmp_path, 0))
    assert "data" in str(refused.value.cause)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"port": 0, "key": "k", "examples": ""}',
        b'{"port": 1, "key": "", "examples": ""}',
    ],
)
def test_a_file_that_is_none_names_nobody(tmp_path: Path, content: bytes):
    (tmp_path / FILE).write_bytes(content)
    assert KeptProvider.read(tmp_path) is None
    assert found_by(["x"], tmp_path, {}, tmp_path) == {}
