"""The Dockerfiles of `deploy/`.

No engine builds or runs them here. Checked is what their instructions name: instructions, files,
distributions with their extras, settings, ports, commands; and (acceptance) that pip installs what they
install, from a folder that has what they copy and nothing else. **Not** checked: that the base image is
to be had, that its Python and its shell do what these do, and that a container starts.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
from support.commands import VARIABLES, refused

from playhead_receiver.system.defaults import GRPC_PORT, HTTP_PORT, QUERY_PORT

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "deploy").glob("*.Dockerfile"))
KNOWN = frozenset("CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK RUN USER VOLUME WORKDIR".split())
PATHS = ("/health", "/ready")
"""What the query API answers without a token (`playhead_receiver.endpoints.query_api`)."""


class Instruction(NamedTuple):
    name: str
    value: str


def instructions(path: Path) -> list[Instruction]:
    """Without comments, continued lines joined."""
    lines = [line for line in path.read_text("utf-8").splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    return [Instruction(*line.split(maxsplit=1)) for line in joined.splitlines() if line.strip()]


def values(path: Path, name: str) -> list[str]:
    return [one.value for one in instructions(path) if one.name == name]


def copied(path: Path) -> list[str]:
    """What is copied from the checkout."""
    given = [shlex.split(value) for value in values(path, "COPY")]
    return [source for words in given if not words[0].startswith("--") for source in words[:-1]]


def installed(path: Path) -> dict[str, set[str]]:
    """Folders of the checkout that pip installs, with their extras."""
    found = re.findall(r"\./(\w+)(?:\[([\w,]+)\])?", " ".join(values(path, "RUN")))
    return {room: set(filter(None, extras.split(","))) for room, extras in found}


def project(room: str) -> dict:
    return tomllib.loads((ROOT / room / "pyproject.toml").read_text("utf-8"))["project"]


def environment(path: Path) -> dict[str, str]:
    return dict(word.split("=", 1) for value in values(path, "ENV") for word in shlex.split(value))


def words(path: Path, name: str) -> list[str]:
    (value,) = values(path, name)
    return json.loads(value)


def test_there_are_two():
    assert [path.name for path in FILES] == ["agent.Dockerfile", "receiver.Dockerfile"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_instructions_are_known_and_images_have_a_version(path: Path):
    found = instructions(path)
    assert found[0].name == "FROM"
    assert {one.name for one in found} <= KNOWN
    for value in values(path, "FROM"):
        assert re.fullmatch(r"python:3\.\d+-slim( AS \w+)?", value)
    assert values(path, "USER") == ["10001:10001"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_is_copied_is_in_the_context(path: Path):
    allowed = {
        line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line[:1] == "!"
    }
    assert copied(path)
    for source in copied(path):
        assert (ROOT / source).exists(), source
        assert source in allowed


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_is_installed_needs_nothing_else_of_ours(path: Path):
    rooms = installed(path)
    assert set(rooms) <= set(copied(path))
    names = {project(room)["name"] for room in rooms}
    for room, extras in rooms.items():
        assert extras <= set(project(room).get("optional-dependencies", {})), room
        needs = {re.split(r"[\[=<>]", line)[0] for line in project(room)["dependencies"]}
        assert {one for one in needs if one.startswith("playhead")} <= names, room


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_variables_are_settings(path: Path):
    ours = {name for name in environment(path) if name.startswith("PLAYHEAD_")}
    assert ours and ours <= VARIABLES


def test_the_receiver_listens_where_it_says():
    path = ROOT / "deploy" / "receiver.Dockerfile"
    exposed = {int(port) for value in values(path, "EXPOSE") for port in value.split()}
    assert exposed == {GRPC_PORT, HTTP_PORT, QUERY_PORT}
    assert refused([*words(path, "ENTRYPOINT"), *words(path, "CMD")]) == ""
    assert environment(path)["PLAYHEAD_DATA_DIR"] in values(path, "VOLUME")
    (check,) = values(path, "HEALTHCHECK")
    program = json.loads(check[check.index("[") :])
    assert program[:2] == ["python", "-c"]
    compile(program[2], "healthcheck", "exec")
    (url,) = re.findall(r"http://[^']+", program[2])
    assert (urlsplit(url).port, urlsplit(url).path in PATHS) == (QUERY_PORT, True)


def test_the_agent_is_one_of_the_examples():
    path = ROOT / "deploy" / "agent.Dockerfile"
    assert words(path, "ENTRYPOINT") == ["opentelemetry-instrument", "python"]
    assert (ROOT / "examples" / words(path, "CMD")[0]).exists()
    assert environment(path)["PLAYHEAD_SPOOL_DIR"] in values(path, "VOLUME")


@pytest.mark.acceptance
@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_pip_installs_it_from_what_is_copied(path: Path, tmp_path: Path):
    source, venv = tmp_path / "src", tmp_path / "venv"
    source.mkdir()
    for name in copied(path):
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(ROOT / name, source / name)
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    given = [command for value in values(path, "RUN") for command in value.split("&&")]
    commands = [shlex.split(command) for command in given if "pip install" in command]
    assert commands
    for command in commands:
        rest = command[command.index("install") :]
        done = subprocess.run(
            [str(venv / "bin" / "python"), "-m", "pip", "-q", *rest],
            cwd=source,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    name = "playhead" if path.stem == "receiver" else words(path, "ENTRYPOINT")[0]
    done = subprocess.run([str(venv / "bin" / name), "--help"], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stderr
