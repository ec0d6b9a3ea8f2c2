"""The distributions, as they are published: what they say of themselves, what is in them, what they run.

The wheels are built from the sdists, so a file that is missing there is missing here.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.servers.scripted import ScriptedServer, json_reply

ROOT = Path(__file__).parents[1]
FOLDERS = sorted(path.parent for path in ROOT.glob("*/pyproject.toml"))
PROJECTS: dict[str, dict[str, Any]] = {
    folder.name: tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    for folder in FOLDERS
}
OURS = {project["name"]: room for room, project in PROJECTS.items()}
WITHOUT_CODE = {"agent"}
EXTRAS = {"postgres", "s3", "grpc", "sign", "tui", "mcp", "demo"}

AGENT = """\
import sys, urllib.request
with urllib.request.urlopen(sys.argv[1]) as answer:
    print(answer.read().decode())
"""


def requirements(project: dict[str, Any]) -> list[str]:
    extras = project.get("optional-dependencies", {})
    return [*project["dependencies"], *(line for lines in extras.values() for line in lines)]


def test_there_is_one_version_and_rooms_want_each_other_in_it():
    (version,) = {project["version"] for project in PROJECTS.values()}
    series = ".".join(version.split(".")[:2])
    for project in PROJECTS.values():
        for line in requirements(project):
            name, extra, wanted = re.fullmatch(r"([\w-]+)(\[\w+\])?(.*)", line).groups()  # type: ignore[union-attr]
            if name in OURS:
                assert wanted == f"=={series}.*", f"{project['name']}: {line}"
                named = (extra or "").strip("[]")
                assert not named or named in PROJECTS[OURS[name]]["optional-dependencies"]


@pytest.mark.parametrize("room", PROJECTS)
def test_a_distribution_says_what_it_is(room: str):
    project = PROJECTS[room]
    assert project["requires-python"] == ">=3.11"
    assert project["license"] == "Apache-2.0"
    assert (ROOT / room / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert len((ROOT / room / project["readme"]).read_text("utf-8")) > 100
    versions = [one for one in project["classifiers"] if "Python :: 3." in one]
    assert versions == [f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13, 14)]
    packages = [path.parent for path in (ROOT / room).glob("playhead*/__init__.py")]
    assert bool(packages) == (room not in WITHOUT_CODE)
    assert [one.name for one in packages if not (one / "py.typed").exists()] == []


def test_the_extras_of_the_one_name_are_those_that_are_told():
    assert set(PROJECTS["cli"]["optional-dependencies"]) == EXTRAS


def test_no_folder_of_a_package_is_ignored_by_git():
    """A build leaves out what git ignores, also if git has it."""
    lines = (ROOT / ".gitignore").read_text().split()
    ignored = {line.rstrip("/") for line in lines if not line.startswith("/")}
    sources = (one for room in PROJECTS for one in (ROOT / room).glob("playhead*/**/*.py"))
    assert ignored.isdisjoint({part for one in sources for part in one.relative_to(ROOT).parts})


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with sdists and wheels of all distributions, each wheel made of its sdist."""
    folder = tmp_path_factory.mktemp("dist")
    for room in PROJECTS:
        words = ["-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT / room)]
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``bin`` of an environment with the wheels of `playhead[demo]`, and nothing else of ours."""
    return environment_of(tmp_path_factory.mktemp("machine"), built, "playhead", "[demo]")


def wheel_of(built: Path, name: str) -> Path:
    (found,) = built.glob(f"{name.replace('-', '_')}-*.whl")
    return found


def environment_of(folder: Path, built: Path, name: str, extra: str = "") -> Path:
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    python = folder / "venv" / "bin" / "python"
    others = [str(wheel_of(built, one)) for one in needed(name) - {name}]
    words = ["-m", "pip", "install", "-q", "--disable-pip-version-check"]
    words += ["-c", str(ROOT / "constraints.txt"), f"{wheel_of(built, name)}{extra}", *others]
    done = subprocess.run([str(python), *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return python.parent


def needed(name: str) -> set[str]:
    """A distribution of ours and those of ours that it needs."""
    found = {name}
    for line in PROJECTS[OURS[name]]["dependencies"]:
        other = re.split(r"[\[=<>]", line)[0]
        if other in OURS:
            found |= needed(other)
    return found


def names_in(path: Path) -> list[str]:
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return wheel.namelist()
    with tarfile.open(path) as sdist:
        assert not [one.name for one in sdist if not one.isfile()], "a link leads nowhere elsewhere"
        return sdist.getnames()


@pytest.mark.acceptance
@pytest.mark.timeout(600)
def test_sdists_and_wheels_are_whole(built: Path):
    files = sorted(built.iterdir())
    assert len(files) == 2 * len(PROJECTS)
    done = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *map(str, files)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("PASSED") == len(files)
    for path in files:
        names = names_in(path)
        assert any(name.endswith("LICENSE") for name in names), path.name
        if path.suffix == ".whl" and "playhead_agent" not in path.name:
            assert any(name.endswith("/py.typed") for name in names), path.name
    for room, project in PROJECTS.items():
        sources = {str(one.relative_to(ROOT / room)) for one in (ROOT / room).glob("playhead*/**/*.py")}
        assert sources <= set(names_in(wheel_of(built, project["name"]))), room
    assert "playhead_cli/demo/agents/weather_agent.py" in names_in(wheel_of(built, "playhead"))


class Machine:
    """A person's machine: an environment, and a home of its own."""

    def __init__(self, bin: Path, home: Path) -> None:
        self.bin, self.home = bin, home
        kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TMPDIR") if name in os.environ}
        self.environ = {**kept, "HOME": str(home), "PATH": f"{bin}{os.pathsep}/usr/bin{os.pathsep}/bin"}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.bin / words[0]), *words[1:]],
            cwd=self.home,
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=300,
        )


@pytest.fixture
def machine(installed: Path, tmp_path: Path) -> Machine:
    return Machine(installed, tmp_path)


@pytest.mark.acceptance
@pytest.mark.timeout(600)
def test_the_installed_command_says_its_version(machine: Machine):
    assert machine.run("playhead", "--version").stdout == f"playhead {PROJECTS['cli']['version']}\n"
    where = (
        "import playhead_cli, playhead_semconv; print(playhead_cli.__file__, playhead_semconv.__file__)"
    )
    found = machine.run("python", "-c", where).stdout.split()
    assert all(path.startswith(str(machine.bin.parent)) for path in found) and len(found) == 2


@pytest.mark.acceptance
@pytest.mark.timeout(600)
def test_the_installed_demo_runs(machine: Machine):
    done = machine.run("playhead", "demo")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 replays identical, 0 connections tried" in done.stdout


@pytest.mark.acceptance
@pytest.mark.timeout(600)
def test_the_installed_command_records_and_replays(machine: Machine):
    (machine.home / "agent.py").write_text(AGENT, "utf-8")
    with ScriptedServer() as server:
        server.script([json_reply({"sky": "clear"})])
        recorded = machine.run("playhead", "record", "agent.py", f"{server.url}/tool")
        assert (recorded.returncode, recorded.stdout) == (0, '{"sky":"clear"}\n'), recorded.stderr
    replayed = machine.run("playhead", "replay", "--json")
    assert replayed.returncode == 0, replayed.stderr
    assert json.loads(replayed.stdout)["verdict"] == "identical"


@pytest.fixture
def up(machine: Machine) -> Iterator[subprocess.Popen[str]]:
    words = ["up", "--json", "--http-port", "0", "--grpc-port", "0", "--query-port", "0"]
    child = subprocess.Popen(
        [str(machine.bin / "playhead"), *words],
        cwd=machine.home,
        env=machine.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield child
    child.kill()
    child.communicate()


@pytest.mark.acceptance
@pytest.mark.timeout(600)
def test_the_installed_receiver_is_ready_and_stops(up: subprocess.Popen[str]):
    assert up.stdout is not None
    said = json.loads(up.stdout.readline())
    assert httpx.get(f"{said['query']}/ready", timeout=60).json()["status"] == "ok"
    assert said["grpc"] == ""  # it is an extra
    up.send_signal(signal.SIGTERM)
    assert up.wait(60) == 0


@pytest.mark.acceptance
@pytest.mark.timeout(600)
def test_an_agents_image_gets_nothing_of_a_server(built: Path, tmp_path: Path):
    bin = environment_of(tmp_path, built, "playhead-agent")
    listed = subprocess.run(
        [str(bin / "python"), "-m", "pip", "list", "--format=json"], capture_output=True, check=True
    )
    names = {one["name"].lower() for one in json.loads(listed.stdout)}
    assert names >= {"playhead-agent", "playhead-instrumentation", "playhead-exporter"}
    assert not names & {
        "playhead",
        "playhead-receiver",
        "playhead-replay",
        "playhead-analysis",
        "starlette",
        "apsw",
        "grpcio",
    }
    assert (bin / "opentelemetry-instrument").exists()
