import json
import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support.outside.terminal import heard
from support.starting.cli import CommandLine, store_run
from support.tapes.handmade import INSTANCE, TRACE, HandMade

from playhead_checkpoint import Lineage
from playhead_cli.output.words import age, seconds, size
from playhead_cli.session.session import Session
from playhead_receiver.storage import open_store
from playhead_receiver.storage.api.maintenance import StoredCheckpoints
from playhead_semconv import attributes as a


def test_ls_lists_runs(playhead: CommandLine, refund_1: str):
    done = playhead("ls")
    assert done.lines == [
        "NAME      STATUS   AGE  STEPS  TOKENS    COST    ERROR",
        "refund-1  failure  1m   11     4068→322  $0.01+  ValueError",
    ]
    assert done.err == ""


def test_ls_of_nothing_says_so(playhead: CommandLine):
    done = playhead("ls")
    assert (done.status, done.out) == (0, "")
    assert done.err == f"playhead: no runs in {playhead.data_dir}\n"
    assert json.loads(playhead("ls", "--json").out) == {"schema_version": 1, "runs": []}


def test_a_run_that_succeeded_without_a_step_is_listed_on_request(playhead: CommandLine):
    store_run(playhead.data_dir, HandMade().start().exit(0))
    done = playhead("ls")
    assert (done.lines, done.err) == ([], f"playhead: no runs with steps in {playhead.data_dir}\n")
    for words in (("--all",), ("--agent", "refund"), ("status:success",)):
        assert playhead("ls", *words).lines[-1].startswith("refund-1  success")
    store_run(playhead.data_dir, HandMade(b"f" * 16, b"f" * 16).start().exit(1))
    assert [line.split()[:2] for line in playhead("ls").lines[1:]] == [["refund-2", "failure"]]


def test_a_fork_is_listed_with_its_origin_and_the_step(playhead: CommandLine, refund_1: str):
    origin = f"{TRACE.hex()}-{'0' * 16}"
    for number, (mode, where) in enumerate((("fork", f"{origin}:3"), ("resume", origin))):
        made = HandMade(bytes([number]) * 16, bytes([number + 1]) * 16)
        made.start(**{a.PLAYHEAD_RUN_MODE: mode, a.PLAYHEAD_RUN_ORIGIN: where})
        made.chat()
        store_run(playhead.data_dir, made.exit(0))
    listed = {line.split()[0]: line.split()[-1] for line in playhead("ls").lines}
    assert (listed["refund-2"], listed["refund-3"]) == ("refund-1:3", "refund-1")
    # The origin need not be on the page.
    assert playhead("ls", "-n", "2", "--status", "success").lines[-1].split()[-1].startswith("refund-1")
    assert playhead("show", "refund-2").lines[-1] == "  fork of refund-1:3"
    assert playhead("show", "refund-1").lines[-2:] == [
        "  fork at 3: refund-2 success, 1 step",
        "  resume: refund-3 success, 1 step",
    ]


def test_ls_filters(playhead: CommandLine, refund_1: str):
    assert len(playhead("ls", "--status", "failure").lines) == 2
    assert playhead("ls", "--status", "success").lines == []
    nothing = playhead("ls", "agent:other")
    assert (nothing.status, nothing.lines) == (0, [])
    assert nothing.err == f"playhead: no such runs in {playhead.data_dir}\n"


def test_show_prints_the_tree(playhead: CommandLine, refund_1: str):
    lines = playhead("show").lines
    assert lines[0] == "refund-1 failure, 11 steps, 6.5s, 4068→322 tok, $0.01+, gpt-4o"
    assert lines[1] == "  agent.py --order 81"
    assert lines[2:] == [
        "→ order 81?",
        "↻ model rate_limit  chat at 10  POST 429  recovered",
        "✗ tool api_error  refund at 11  ValueError: no order",
        "   1  +0.0s chat gpt-4o          812→64 tok  300ms",
        '   2  +1.3s execute_tool search  "order 81"  200ms',
        "   3  +1.5s chat gpt-4o          812→64 tok  200ms",
        "⋮ 4–9 same ×3 (--all)",
        "  10  +5.9s chat gpt-4o          8→2 tok  400ms",
        "             ↻ POST 429  200ms",
        "             ↻ POST 200  200ms",
        "✗ 11  +6.3s execute_tool refund  ValueError: no order  200ms  api_error",
    ]


def test_show_all_folds_nothing(playhead: CommandLine, refund_1: str):
    lines = playhead("show", "--all").lines
    steps = [line.split()[0] for line in lines if re.match(r" +[0-9]", line)]
    assert steps == [str(number) for number in range(1, 11)]
    assert sum("↻" in line for line in lines) == 8


def test_show_all_shows_spans_of_others_where_they_stand(playhead: CommandLine):
    made = HandMade().start()
    chain = made.begin("LangGraph", **{"openinference.span.kind": "CHAIN"})
    node = made.begin("planner", parent=chain, **{"openinference.span.kind": "CHAIN"})
    call = made.begin("chat gpt-4o", parent=node, kind=3, **{a.GEN_AI_OPERATION_NAME: "chat"})
    attempt = made.begin("POST", parent=call, kind=3, **{a.HTTP_REQUEST_METHOD: "POST"})
    other = made.begin("parse", parent=chain)
    for span in (attempt, call, node, other, chain):
        made.finish(span, **({a.HTTP_RESPONSE_STATUS_CODE: 200} if span == attempt else {}))
    made.exit()
    store_run(playhead.data_dir, made)
    told = [line[11:].split("  ") for line in playhead("show").lines[2:]]
    assert [words[0] for words in told] == ["chat gpt-4o"]
    lines = [line[11:].rstrip() for line in playhead("show", "--all").lines[2:]]
    assert [re.sub(r"  [0-9.]+m?s$", "", line) for line in lines] == [
        "LangGraph",
        "  planner",
        "    chat gpt-4o",
        "     ↻ POST 200",
        "  parse",
    ]


def test_show_json_has_tree_and_steps(playhead: CommandLine, refund_1: str):
    found = json.loads(playhead("show", "--json").out)
    assert found["schema_version"] == 1
    assert (found["name"], found["status"], len(found["steps"])) == ("refund-1", "failure", 11)
    assert (found["input_tokens"], found["output_tokens"]) == (4068, 322)
    assert (found["cached_tokens"], found["reasoning_tokens"]) == (0, 0)
    assert found["command"]["argv"] == ["agent.py", "--order", "81"]
    [root] = found["spans"]
    assert [child["name"] for child in root["children"]][:2] == ["chat gpt-4o", "execute_tool search"]


def test_words_that_are_no_utf_8_are_spelt_out(playhead: CommandLine):
    made = HandMade().start(**{a.PLAYHEAD_RUN_ARGV: ["agent.py", b"x\xff\x1b[2J"]})
    store_run(playhead.data_dir, made.exit(0))
    assert playhead("show").lines[1] == "  agent.py 'x\\xff\\u001b[2J'"
    assert json.loads(playhead("show", "--json").out)["command"]["argv"] == ["agent.py", "x\\xff\x1b[2J"]
    assert playhead("doctor", "last").lines[0].startswith("✓ refund-1: agent.py 'x\\xff\\u001b[2J' (")


def test_show_of_a_step_as_json(playhead: CommandLine, refund_1: str):
    found = json.loads(playhead("show", "refund-1:1", "--json").out)
    assert (found["run"], found["number"], found["attempts"]) == ("refund-1", 1, 1)
    [exchange] = found["exchanges"]
    assert exchange["name"] == "main#0"
    assert [chunk["text"] for chunk in exchange["chunks"]] == ['{"id":', '"1"}']
    assert json.loads(exchange["request"]["text"])["model"] == "gpt-4o"


@pytest.mark.parametrize(
    ("words", "data"),
    [
        (("refund-1:1", "--raw"), '{"id":"1"}'),
        (
            ("refund-1", "--at", "1", "--raw", "request"),
            '{"model":"gpt-4o","messages":[{"role":"user","content":"order 81?"}]}',
        ),
    ],
)
def test_raw_prints_the_bytes(playhead: CommandLine, refund_1: str, words: tuple[str, ...], data: str):
    assert playhead("show", *words).out == data


def test_raw_needs_a_step_with_bytes(playhead: CommandLine, refund_1: str):
    assert (
        playhead("show", "--raw").err.splitlines()[0]
        == "error[usage]: --raw shows the bytes of one step"
    )
    tool = playhead("show", ":2", "--raw")
    assert (
        tool.err.splitlines()[0]
        == "error[usage]: step 2 of refund-1 has no exchange, so there are no bytes"
    )


def test_a_snapped_point_is_said(playhead: CommandLine, refund_1: str):
    done = playhead("show", "refund-1:000000000000000e")
    assert done.err == "playhead: POST is a part of step 9\n"


def test_a_dead_run_shows_how_far_it_came_and_what_is_missing(playhead: CommandLine):
    made = HandMade().start()
    call = made.begin("chat gpt-4o", kind=3, **{a.GEN_AI_OPERATION_NAME: "chat"})
    attempt = made.begin("POST", parent=call, kind=3, **{a.HTTP_REQUEST_METHOD: "POST"})
    made.exchange(request=b"{}", chunks=(b"12345", b"678"), span=attempt)
    made.facts.pop()
    made.facts.pop(2)
    store_run(playhead.data_dir, made)
    lines = playhead("show").lines
    assert lines[0] == "refund-1 interrupted, 1 step, 0.3s"
    assert lines[2:] == [
        "… 1  +0.0s chat gpt-4o  200, 8 bytes in 2 chunks, not ended",
        f"! 1 fact missing: 2 to 2, process {INSTANCE.hex()[:8]}",
        "interrupted: the process died before it could say how it ended",
    ]
    assert playhead("ls").lines[1].split()[1:3] == ["interrupted", "(gaps)"]


def test_an_answered_step_whose_span_died_with_the_process_is_not_unended(playhead: CommandLine):
    made = HandMade().start()
    call = made.begin("chat gpt-4o", kind=3, **{a.GEN_AI_OPERATION_NAME: "chat"})
    attempt = made.begin("POST", parent=call, kind=3, **{a.HTTP_REQUEST_METHOD: "POST"})
    made.exchange(request=b"{}", chunks=(b"12345",), span=attempt)
    store_run(playhead.data_dir, made)
    assert "… 1  +0.0s chat gpt-4o  200, 5 bytes in 1 chunk, complete" in playhead("show").lines


def test_colour_is_asked_for_or_not(
    playhead: CommandLine, refund_1: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert "\x1b[" not in playhead("ls").out
    assert "\x1b[" in playhead("ls", "--color", "always").out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in playhead("ls").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in playhead("ls").out
    assert "\x1b[" in playhead("ls", "--color", "always").out


def test_ascii_stands_in_where_nothing_else_can_be_written(
    playhead: CommandLine, refund_1: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Session, "plain", True)
    out = playhead("show").out
    assert out.isascii()
    assert "x 11" in out


@pytest.mark.parametrize(
    ("ns", "text"),
    [(0, "0.0s"), (41_240_000_000, "41.2s"), (185 * 10**9, "3m05s"), (7620 * 10**9, "2h07m")],
)
def test_durations(ns: int, text: str):
    assert seconds(ns) == text


def test_ages_and_sizes():
    assert [age(n * 10**9) for n in (5, 61, 3700, 200_000)] == ["5s", "1m", "1h", "2d"]
    assert [size(n) for n in (812, 3200, 1_400_000)] == ["812 B", "3.2 kB", "1.4 MB"]


def test_the_data_folder_comes_from_the_environment_too(
    playhead: CommandLine, refund_1: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    assert playhead("ls").lines[1].startswith("refund-1")
    monkeypatch.setenv("PLAYHEAD_DATA_DIR", str(tmp_path / "elsewhere"))
    assert playhead("ls").lines[1].startswith("refund-1")


def test_on_a_terminal_the_next_command_is_one_that_can_be_run(playhead: CommandLine, refund_1: str):
    """As typed here, where no ``playhead`` is on the path."""
    master, terminal = pty.openpty()
    words = [sys.executable, "-m", "playhead_cli", "ls", "--data-dir", str(playhead.data_dir)]
    environ = {"PATH": "/nowhere", "HOME": str(playhead.data_dir), "TERM": "dumb"}
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=terminal, env=environ, timeout=60)
    os.close(terminal)
    said = heard(master)
    assert done.returncode == 0, said
    command = said.strip().removeprefix("next: ")
    assert command.endswith(f"show {refund_1}")
    assert Path(shlex.split(command)[0]).exists()


@pytest.mark.parametrize(
    ("option", "command"),
    [
        ("--state", "state"),
        ("--events", "events"),
        ("--files", "workspace"),
        ("--checkpoints", "checkpoints"),
        ("--artifacts", "artifacts"),
    ],
)
def test_show_prints_a_part_as_its_command_does(
    playhead: CommandLine, refund_1: str, option: str, command: str
):
    for more in ((), ("--json",)):
        for target in (refund_1, f"{refund_1}:1"):
            expected = playhead(command, target, *more)
            assert playhead("show", target, option, *more) == expected
            assert expected.status == 0


def test_parts_of_a_run_exclude_each_other(playhead: CommandLine, refund_1: str):
    done = playhead("show", refund_1, "--state", "--wire")
    assert (done.status, done.err) == (
        2,
        "error[usage]: --state and --wire exclude each other\n",
    )
    assert playhead("show", refund_1, "--events", "--files").status == 2
    assert playhead("show", refund_1, "--state", "--all").status == 0


def test_checkpoints_of_other_senders_are_listed_with_their_run(playhead: CommandLine, refund_1: str):
    store = open_store(playhead.data_dir)
    assert isinstance(store, StoredCheckpoints)
    try:
        kept = store.checkpoints()
        for number, run in ((1, TRACE), (2, b"o" * 16)):
            lineage = Lineage(run, labels=("start", "\x1b[2J"), id=bytes([number]) * 16, thread="chat")
            stored = kept.put({"step": number}, lineage)
            assert stored.lineage.run == run
    finally:
        store.close()
    before, printed = playhead("checkpoints", refund_1), playhead("checkpoints", refund_1, "--json")
    (line,) = [line for line in before.lines if line.startswith("sent")]
    assert re.fullmatch(r"sent +\S+  7 B +start, \\u001b\[2J  (01){16}  chat", line), line
    (sent,) = json.loads(printed.out)["sent"]
    assert (sent["id"], sent["run"], sent["thread"], sent["size_bytes"]) == (
        "01" * 16,
        TRACE.hex(),
        "chat",
        7,
    )
