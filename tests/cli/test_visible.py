"""Text of a run never speaks to the terminal, and hides nothing, whatever shows it."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.outside.terminal import heard
from support.starting.cli import CommandLine, store_run
from support.tapes.handmade import NOW_INSTANCE, NOW_TRACE, TRACE, HandMade

from playhead_cli.mcp import compact
from playhead_core.difference import Difference
from playhead_core.untrusted.shown_text import visible
from playhead_replay.goldens.replayed_golden import Failing
from playhead_replay.report.junit import junit_xml
from playhead_replay.report.report import Divergence, Report
from playhead_semconv import attributes as a

NASTY = {
    "title": "\x1b]0;owned\x07",
    "clipboard": "\x1b]52;c;cm0gLXJmIC8=\x07",
    "erase": "\x1b[2J\x1b[1;31m",
    "c1": "\x9b2J\x9d0;owned\x9c",
    "turned": "\u202etxt.exe\u202c\u2066\u2069\u200f",
    "unseen": "a\u200bb\ufeffc\U000e0041",
    "delete": "\x7f\x08\x08",
}
ALL = " ".join(NASTY.values())
BARE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)
STYLE = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;[^\x1b]*\x1b\\|\r(?=\n)")
"""What playhead itself says to a terminal."""


def nasty(trace_id: bytes, instance: bytes, word: str) -> HandMade:
    said = json.dumps([{"role": "user", "parts": [{"type": "text", "content": f"word {ALL} {word}"}]}])
    made = HandMade(instance, trace_id).start(**{a.PLAYHEAD_RUN_AGENT: f"agent {ALL}"})
    call = made.begin(
        f"chat {ALL}\nforged success",
        kind=3,
        **{
            a.GEN_AI_OPERATION_NAME: "chat",
            a.GEN_AI_REQUEST_MODEL: ALL,
            a.GEN_AI_INPUT_MESSAGES: said,
            f"own.{ALL}": ALL,
        },
    )
    made.exchange(
        key=f"POST http://x/{ALL}",
        request=json.dumps({"q": f"{ALL}{word}"}, ensure_ascii=False).encode(),
        chunks=(f"data: {ALL}{word}\n\n".encode(),),
        span=call,
    )
    made.finish(call, error=f"Broken: {ALL}\nforged")
    made.tool(ALL, json.dumps({"path": f"{ALL}{word}"}, ensure_ascii=False), error=f"{ALL}: {word}")
    made.say(f"{ALL}{word}\n")
    made.exit(1)
    return made


@pytest.fixture
def two(playhead: CommandLine) -> tuple[str, str]:
    """Two runs, stored and searchable."""
    from playhead_receiver.storage import open_store

    store_run(playhead.data_dir, nasty(TRACE, bytes(range(16)), "one"))
    store_run(playhead.data_dir, nasty(NOW_TRACE, NOW_INSTANCE, "two"))
    store = open_store(playhead.data_dir)
    try:
        while store.index():
            pass
    finally:
        store.close()
    return TRACE.hex(), NOW_TRACE.hex()


COMMANDS = (
    "ls",
    "ls --json",
    "show {0}",
    "show {0} --all",
    "show {0} --json",
    "show {0}:1",
    "show {0}:1 --all",
    "show {0}:1 --wire",
    "show {0}:1 --json",
    "show {0}:2",
    "search word",
    "search word --json",
    "diff {0} {1}",
    "diff {0} {1} --json",
    "tail {0}",
    "export {0} -o - --format otlp",
    "verify",
    "show no-such-\x1b]0;x\x07run",
    "replay {0}",
)


@pytest.mark.parametrize("words", COMMANDS)
def test_nothing_bare_is_printed(playhead: CommandLine, two: tuple[str, str], words: str):
    done = playhead(*(word.format(*two) for word in words.split(" ")))
    for said in (done.out, done.err):
        assert BARE.findall(said) == [], said
    assert "forged" not in {line.split(" ")[0] for line in done.out.splitlines()}
    if words.startswith(("show {0}", "diff", "search", "tail")):
        assert r"\u001b" in done.out
    if words.endswith("--json"):
        assert done.out
        for line in done.out.splitlines():
            json.loads(line)


@pytest.mark.parametrize("words", ["show {0}", "show {0}:1", "show {0}:1 --raw request", "diff {0} {1}"])
def test_nor_to_a_terminal(playhead: CommandLine, two: tuple[str, str], words: str):
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "playhead_cli", "--data-dir", str(playhead.data_dir)]
    environ = {**os.environ, "TERM": "xterm", "PAGER": "cat", "LESS": "-R", "COLUMNS": "500"}
    child = subprocess.Popen(
        [*command, *(word.format(*two) for word in words.split(" "))],
        stdout=slave,
        stderr=slave,
        env=environ,
    )
    os.close(slave)
    text = STYLE.sub("", heard(master))
    child.wait()
    assert BARE.findall(text) == [] and r"\u001b" in text, text


def test_nor_written_into_a_page(playhead: CommandLine, two: tuple[str, str], tmp_path: Path):
    page = tmp_path / "diff.html"
    playhead("diff", *two, "--html", str(page))
    text = page.read_text()
    assert BARE.findall(text) == [] and r"\u001b" in text and r"\u202e" in text


def test_nor_told_to_pytest_junit_or_an_agent():
    one = Divergence("stdout", f"what {ALL}", 1, difference=Difference("line 1", ALL, f"{ALL}2"))
    report = Report(ALL, "strict", {"http": {}}, [], [one])
    failing = Failing(Path("x.tape"), "test_x.py::test")
    assert BARE.findall(failing.diverged(report, [one])) == []
    assert BARE.findall(junit_xml(report, ALL).decode()) == []
    assert BARE.findall(compact.joined([ALL], "")) == []


@pytest.mark.parametrize("name", NASTY)
def test_what_is_spelt_out_means_the_same_in_json(name: str):
    text = visible(json.dumps(NASTY[name], ensure_ascii=False))
    assert BARE.findall(text) == [] and json.loads(text) == NASTY[name]
    assert visible("plain é ☃ 👩‍🔧\n\t") == "plain é ☃ 👩‍🔧\n\t"
