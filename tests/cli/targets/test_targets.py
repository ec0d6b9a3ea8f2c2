import doctest
import json
from pathlib import Path
from urllib.parse import quote

import pytest
from support.starting.cli import CommandLine, refund, store_run
from support.tapes.handmade import NOW_INSTANCE, NOW_TRACE, TRACE, HandMade

from playhead_analysis import folding
from playhead_cli.targets import run_argument as runs
from playhead_cli.targets.point_argument import find_point
from playhead_cli.targets.run_argument import Target, parse_target
from playhead_core.errors import RunUnknown, UsageError
from playhead_replay import Run, write_tape_file

SPAN = "00f067aa0ba902b7"
PANES = {
    "x": {
        "queries": [{"queryType": "traceql", "query": TRACE.hex()}],
        "panelsState": {"trace": {"spanId": SPAN}},
    }
}
EXPLORE = f"https://grafana.example/explore?panes={quote(json.dumps(PANES))}&orgId=1"


@pytest.mark.parametrize(
    ("text", "target"),
    [
        (None, Target("last")),
        ("last-1", Target("last-1")),
        ("refund-7", Target("refund-7")),
        ("refund-7:3", Target("refund-7", "3")),
        ("refund-7:main#4", Target("refund-7", "main#4")),
        (":error", Target("last", "error")),
        ("4f2a1111", Target("4f2a1111")),
        ("refund.tape", Target("refund.tape")),
        ("goldens/refund.tape:end", Target("goldens/refund.tape", "end")),
        (f"http://127.0.0.1:16686/trace/{TRACE.hex()}?x=1", Target(TRACE.hex())),
        (f"http://j/trace/{TRACE.hex()}?uiFind={SPAN}", Target(TRACE.hex(), SPAN)),
        (f"http://j/trace/{SPAN}", Target(SPAN.zfill(32))),
        (f"http://t/api/v2/traces/{TRACE.hex()}", Target(TRACE.hex())),
        (EXPLORE, Target(TRACE.hex(), SPAN)),
        (quote(EXPLORE, safe=":/?=&"), Target(TRACE.hex(), SPAN)),
        (f"00-{TRACE.hex()}-{SPAN}-01", Target(TRACE.hex(), SPAN)),
        (SPAN, Target(SPAN, SPAN)),
        (SPAN.upper(), Target(SPAN, SPAN)),
    ],
)
def test_run_and_point_are_taken_apart(text: str | None, target: Target):
    assert parse_target(text) == target


def test_at_is_the_point():
    assert parse_target("refund-7", "error") == Target("refund-7", "error")


def test_a_url_without_a_trace_id_is_no_run():
    with pytest.raises(RunUnknown, match="no trace id in http://x/y"):
        parse_target("http://x/y")


def test_docstrings_hold():
    for module in (runs, folding):
        assert doctest.testmod(module).failed == 0


@pytest.fixture
def run() -> Run:
    made = refund()
    return Run.of_tape(made.tape(), (span.otlp for span in made.spans), "refund-1")


@pytest.mark.parametrize(
    ("text", "number", "snapped"),
    [
        ("1", 1, ""),
        ("11", 11, ""),
        ("start", 1, ""),
        ("end", 11, ""),
        ("error", 11, ""),
        ("main#1", 3, ""),
        ("0000000000000001", 1, ""),
        ("000000000000000f", 10, ""),
        ("000000000000000e", 9, "POST is a part of step 9"),
        ("00000000000000a0", 1, "run agent.py is not a step; the nearest is step 1"),
    ],
)
def test_a_point_is_found(run: Run, text: str, number: int, snapped: str):
    point = find_point(run, text)
    assert (point.step.number, point.snapped) == (number, snapped)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("12", "refund-1 has steps 1 to 11, not 12"),
        ("0", "refund-1 has steps 1 to 11, not 0"),
        ("main#99", "refund-1 has no exchange main#99"),
        ("abcdef01", "no span of refund-1 begins with abcdef01"),
        ("00000000", "00000000 begins several spans of refund-1"),
        ("later", "'later' is not a point of a run"),
    ],
)
def test_a_point_that_is_none_is_said(run: Run, text: str, said: str):
    with pytest.raises(UsageError) as raised:
        find_point(run, text)
    assert raised.value.what == said
    assert raised.value.hint == "playhead show refund-1"


def test_without_a_failed_step_the_error_is_the_last_one():
    made = HandMade().start()
    made.chat()
    point = find_point(Run.of_tape(made.exit(1).tape(), name="x-1"), "error")
    assert point.snapped == "no step of x-1 failed; the last is step 1"


def test_runs_are_found_by_name_place_status_and_id(playhead: CommandLine, tmp_path: Path):
    names = [
        store_run(playhead.data_dir, refund()),
        store_run(playhead.data_dir, refund(NOW_TRACE, NOW_INSTANCE)),
    ]
    assert names == ["refund-1", "refund-2"]
    for text, name in (
        ("refund-1", "refund-1"),
        ("last", "refund-2"),
        ("last-1", "refund-1"),
        ("failed", "refund-2"),
        (TRACE.hex(), "refund-1"),
        (TRACE.hex()[:8], "refund-1"),
        (f"http://127.0.0.1:3000/trace/{NOW_TRACE.hex()}", "refund-2"),
    ):
        assert playhead("show", text).lines[0].split()[0] == name
    made = refund()
    path = tmp_path / "golden.tape"
    write_tape_file(path, made.tape(), (span.otlp for span in made.spans))
    assert playhead("show", str(path)).lines[0].split()[0] == "golden"
    missing = playhead("show", str(tmp_path / "other.tape"))
    assert (missing.status, missing.err.split(":")[0]) == (2, "error[tape-missing]")


def test_a_span_id_names_run_and_step(playhead: CommandLine):
    store_run(playhead.data_dir, refund())
    done = playhead("show", "000000000000000f")
    assert done.status == 0
    assert done.out == playhead("show", "refund-1:10").out
    assert playhead("show", f"00-{TRACE.hex()}-000000000000000f-01").out == done.out


def test_a_span_id_of_two_runs_is_ambiguous(playhead: CommandLine):
    store_run(playhead.data_dir, refund())
    store_run(playhead.data_dir, refund(NOW_TRACE, NOW_INSTANCE))
    done = playhead("show", "000000000000000f")
    assert done.status == 2
    assert '"000000000000000f" is' in done.err
    assert TRACE.hex() in done.err
    assert NOW_TRACE.hex() in done.err


def test_a_span_id_does_not_delete_its_run(playhead: CommandLine):
    store_run(playhead.data_dir, refund())
    assert playhead("delete", "000000000000000f", "--yes").status == 2
    assert playhead("show", "refund-1").status == 0


def test_a_prefix_of_a_trace_id_as_long_as_a_span_id(playhead: CommandLine):
    store_run(playhead.data_dir, refund())
    done = playhead("show", TRACE.hex()[:16])
    assert done.status == 2
    assert "the trace id of refund-1 does: leave out the point" in done.err
