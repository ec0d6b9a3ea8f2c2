"""The oldest supported version of each SDK of models, and the newest."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from support.answers.sdk_table import APART, OLDEST, SDKS, replies, surroundings
from support.answers.xai_expected import CASES as CASES_OF_XAI
from support.answers.xai_expected import INPUT_TOKENS, OUTPUT_TOKENS, PRINTED, XAI, calls
from support.sdks import program
from support.servers.scripted import ScriptedServer
from support.servers.scripted_grpc import ScriptedGrpc
from support.starting.home import Home
from support.starting.installing import install

PROGRAM = Path(program.__file__)

CASES = ("plain", "stream", "again")
VERSIONS = pytest.mark.parametrize("newest", [False, True], ids=["oldest", "newest"])
pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(900)]


@VERSIONS
@pytest.mark.parametrize("name", [name for name in OLDEST if name in SDKS])
def test_calls_of_a_version(tmp_path: Path, name: str, newest: bool):
    sdk, libraries = SDKS[name], tmp_path / "libraries"
    install(libraries, name if newest else f"{name}=={OLDEST[name]}")
    cases = [case for case in CASES if case in sdk.cases]
    home = Home(tmp_path, {})
    for environ in (home.environ, home.bare):
        environ.update(surroundings(tmp_path))
    with ScriptedServer() as server:
        for case in cases:
            server.script(replies(sdk, case))
        done = home.playhead("record", PROGRAM, server.url, libraries, sdk.adapter, *cases)
    assert done.returncode == 0, done.stderr
    assert "cannot record" not in done.stderr
    assert [line.partition(": ")[0] for line in done.stdout.splitlines()] == cases
    assert "Error" not in done.stdout, done.stdout
    home.playhead("rederive")
    (run,) = home.runs()
    assert (run["steps"], run["models"]) == (len(cases), ["m-1"])
    assert (run["input_tokens"], run["output_tokens"]) == (12 * len(cases), 5 * len(cases))
    shown: Any = json.loads(home.playhead("show", "last", "--json").stdout)
    attempts = [step["attempts"] for step in shown["steps"]]
    assert attempts == [2 if case == "again" else 1 for case in cases]
    status, report = home.report("last")
    assert (status, report["verdict"]) == (0, "identical")


@VERSIONS
def test_calls_of_a_version_of_xai(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, newest: bool):
    monkeypatch.setattr(sys, "path", [*sys.path, str(APART)])
    from support.answers.xai_answers import replies as replies_of_xai

    libraries = tmp_path / "libraries"
    install(libraries, "xai-sdk" if newest else f"xai-sdk=={OLDEST['xai-sdk']}")
    home = Home(tmp_path, {"XAI_SDK_DISABLE_TRACING": "1", "PYTHONPATH": str(libraries)})
    with ScriptedGrpc() as server:
        for case in CASES_OF_XAI:
            server.script(replies_of_xai(case))
        done = home.playhead("record", PROGRAM, server.target, libraries, XAI.adapter, *CASES_OF_XAI)
    assert (done.returncode, done.stdout) == (0, PRINTED), done.stderr
    assert "cannot record" not in done.stderr
    home.playhead("rederive")
    (run,) = home.runs()
    steps = sum(len(calls(case)) for case in CASES_OF_XAI)
    assert (run["steps"], run["models"]) == (steps, ["m-1"])
    assert (run["input_tokens"], run["output_tokens"]) == (INPUT_TOKENS, OUTPUT_TOKENS)
    status, report = home.report("last")
    assert (status, report["verdict"]) == (0, "identical")
