"""SDKs of models beside openai and anthropic: the oldest supported version of each, and the newest."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.home import Home
from support.scripted import ScriptedServer
from support.sdk_table import SDKS, replies, surroundings
from support.sdks import program

PROGRAM = Path(program.__file__)

OLDEST = {
    "google-genai": "1.30.0",
    "boto3": "1.40.0",
    "mistralai": "2.0.5",
    "cohere": "5.17.0",
    "ollama": "0.5.0",
    "groq": "0.30.0",
    "together": "2.0.0",
    "huggingface_hub": "1.0.0",
}
"""Distribution → the oldest version that is supported."""

CASES = ("plain", "stream", "again")


@pytest.mark.acceptance
@pytest.mark.timeout(900)
@pytest.mark.parametrize("newest", [False, True], ids=["oldest", "newest"])
@pytest.mark.parametrize("name", SDKS)
def test_calls_of_a_version(tmp_path: Path, name: str, newest: bool):
    sdk, libraries = SDKS[name], tmp_path / "libraries"
    wanted = name if newest else f"{name}=={OLDEST[name]}"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "-q", "--target"]
    subprocess.run([*pip, str(libraries), wanted], check=True, capture_output=True)
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
    assert done.stdout.count("there") == len(cases) or name in ("cohere", "boto3"), done.stdout
    home.playhead("rederive")
    (run,) = home.runs()
    assert (run["steps"], run["models"]) == (len(cases), ["m-1"])
    assert (run["input_tokens"], run["output_tokens"]) == (12 * len(cases), 5 * len(cases))
    shown: Any = json.loads(home.playhead("show", "last", "--json").stdout)
    attempts = [step["attempts"] for step in shown["steps"]]
    assert attempts == [2 if case == "again" else 1 for case in cases]
    status, report = home.report("last")
    assert (status, report["verdict"]) == (0, "identical")
