"""Check functions: they look at each span, and fail a replay with its name."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.servers.scripted import ScriptedServer, json_reply, openai_chat
from support.starting.home import Home

AGENT = """
from openai import OpenAI

client = OpenAI(max_retries=0)
for question in ("one", "two", "three"):
    answer = client.chat.completions.create(
        model="gpt-5.5", messages=[{"role": "user", "content": question}]
    ).choices[0].message.content
    print(question, answer)
"""

CHECKS = """
import json
import playhead

@playhead.check
def never_says_two(span):
    messages = json.loads(span.attributes.get("gen_ai.input.messages", "[]"))
    assert "two" not in str(messages), f"it asked {messages[0]['parts'][0]['content']}"

@playhead.check(name="holds")
def every_span_has_a_name(span):
    return bool(span.name)
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    folder = tmp_path_factory.mktemp("home")
    (folder / "agent.py").write_text(AGENT)
    (folder / "checks.py").write_text(CHECKS)
    with ScriptedServer() as server:
        server.on(lambda _: True, json_reply(openai_chat.completion("well")), repeat=True)
        home = Home(folder, {"OPENAI_BASE_URL": server.openai_url, "OPENAI_API_KEY": "test"})
        done = home.playhead("record", folder / "agent.py")
        assert done.returncode == 0, done.stderr
    return home


def replayed(home: Home, text: str) -> tuple[int, str]:
    path = Path(home.folder, "checks.py")
    path.write_text(text)
    done = home.playhead("replay", "last", "--check", path, env=home.bare)
    return done.returncode, done.stdout + done.stderr


def test_a_failing_check_fails_the_replay_and_names_the_span(home: Home):
    status, said = replayed(home, CHECKS)
    assert status == 1, said
    assert re.search(r"step 2: check never_says_two failed at chat gpt-5.5\n +it asked two", said), said
    assert said.count("never_says_two") == 1 and "check holds" not in said


def test_checks_that_hold_change_nothing(home: Home):
    status, said = replayed(home, CHECKS.replace('"two" not in', '"four" not in'))
    assert (status, "identical (exit 0)" in said) == (0, True), said


def test_false_and_any_exception_fail(home: Home):
    path = Path(home.folder, "others.py")
    path.write_text(
        "import playhead\n"
        "playhead.check(lambda span: not span.name.startswith('chat'), name='no calls')\n"
        "@playhead.check\ndef broken(span): span.attributes['nowhere']\n"
    )
    status, report = home.report("last", "--check", path)
    found = [(one["what"], one["detail"]) for one in report["divergences"] if one["kind"] == "check"]
    assert status == 1 and len(found) == len(report["divergences"])
    assert found.count(("check no calls failed at chat gpt-5.5", "it returned False")) == 3
    assert ("check broken failed at chat gpt-5.5", "KeyError: 'nowhere'") in found
    assert [one["step"] for one in report["divergences"] if "no calls" in one["what"]] == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import nowhere_to_be_found", "ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
        ("def check(span): ...", "holds no check"),
    ],
)
def test_a_file_without_a_check_is_an_error(home: Home, text: str, why: str):
    status, said = replayed(home, text)
    assert status == 1 and why in said, said


def test_a_fork_is_checked_where_it_is_played_and_where_it_is_live(home: Home):
    path = Path(home.folder, "asked.py")
    path.write_text(
        "import playhead\n"
        "@playhead.check\ndef never_asks(span):\n"
        "    asked = str(span.attributes.get('gen_ai.input.messages'))\n"
        "    assert 'one' not in asked and 'four' not in asked, asked[-20:]\n"
    )
    with ScriptedServer() as server:
        server.on(lambda _: True, json_reply(openai_chat.completion("well")), repeat=True)
        live = {**os.environ, "OPENAI_BASE_URL": server.openai_url, "OPENAI_API_KEY": "test"}
        edit = "request.messages[0].content=four"
        done = home.playhead(
            "fork", "agent-1:2", "--edit", edit, "--check", path, env={**home.bare, **live}
        )
    assert done.returncode == 1
    said = done.stderr.rpartition("live from")[2]
    assert said.count("check never_asks failed at chat gpt-5.5") == 2, done.stderr


def test_the_program_has_checks_of_its_own(home: Home, tmp_path: Path):
    script = tmp_path / "checked.py"
    script.write_text(CHECKS + AGENT)
    with ScriptedServer() as server:
        server.on(lambda _: True, json_reply(openai_chat.completion("well")), repeat=True)
        live = {**os.environ, "OPENAI_BASE_URL": server.openai_url, "OPENAI_API_KEY": "test"}
        done = home.playhead("record", script, env={**home.bare, **live})
    assert done.returncode == 0 and "three well" in done.stdout
    assert "playhead: check never_says_two failed at chat gpt-5.5: it asked two" in done.stderr
    found = home.playhead("show", "last").stdout
    assert re.search(r"check never_says_two failed at step 2 +it asked two", found), found


RECORDED = """
import playhead

@playhead.check
def never_asks_two(span):
    assert "two" not in str(span.attributes.get("gen_ai.input.messages")), "it asked two"
"""


def test_a_recording_is_checked_while_it_goes_on(home: Home, tmp_path: Path):
    path, script = tmp_path / "recorded.py", tmp_path / "asking.py"
    path.write_text(RECORDED)
    script.write_text("import os, sys\nprint(sys.argv[1:], os.environ.get('OPENAI_API_KEY'))\n" + AGENT)
    with ScriptedServer() as server:
        server.on(lambda _: True, json_reply(openai_chat.completion("well")), repeat=True)
        live = {**home.bare, "OPENAI_BASE_URL": server.openai_url, "OPENAI_API_KEY": "test"}
        done = home.playhead("record", "--check", path, script, "--check", env=live)
        assert done.returncode == 1, done.stderr
        assert "['--check']" in done.stdout and "three well" in done.stdout
        assert "playhead: check never_asks_two failed at chat gpt-5.5: it asked two" in done.stderr
        assert "playhead: 1 check failed" in done.stderr
        asked = len(server.requests)
        path.write_text("def check(span): ...")
        done = home.playhead("record", "--check", path, script, env=live)
        assert done.returncode == 2 and f"{path} holds no check" in done.stderr
        assert len(server.requests) == asked


def test_a_program_that_is_not_started_by_playhead_goes_on_without_a_broken_check(
    home: Home, tmp_path: Path
):
    path = tmp_path / "broken.py"
    path.write_text("import nowhere_to_be_found")
    words = [
        sys.executable,
        "-c",
        "from opentelemetry.instrumentation.auto_instrumentation import run; run()",
    ]
    done = subprocess.run(
        [*words, sys.executable, "-c", "print('well')"],
        env={**home.bare, "PLAYHEAD_CHECKS": str(path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "well\n"), done.stderr
    assert f"playhead: {path} cannot be run: ModuleNotFoundError" in done.stderr
