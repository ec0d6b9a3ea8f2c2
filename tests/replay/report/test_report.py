"""What a report says, word for word: in text and as JSON."""

from __future__ import annotations

import pytest
from support.tapes.handmade import MAIN, NOW_INSTANCE, NOW_TRACE, HandMade

from playhead_core.difference import Difference
from playhead_core.facts import Fidelity
from playhead_replay import Run
from playhead_replay.report.compare import compare
from playhead_replay.report.report import Divergence, OutputCheck, ProcessCheck, Report
from playhead_semconv import attributes as a
from playhead_semconv import events as e

EXACT, MOVED, BLOCKED, LIVE = Fidelity.EXACT, Fidelity.MOVED, Fidelity.BLOCKED, Fidelity.LIVE
UNUSED, VOLATILE, CHANGED = Fidelity.UNUSED, Fidelity.VOLATILE, Fidelity.CHANGED


def parent() -> Report:
    found = Report(
        "refund-7",
        "strict",
        {"http": {EXACT: 3, MOVED: 1}, "tool": {LIVE: 1, UNUSED: 2}},
        [OutputCheck("stdout", True, "10 bytes", "10 bytes"), OutputCheck("exit", False, "0", "1")],
        [Divergence("moved", "moved main#1 GET /a", 2, detail="asked elsewhere", seq=4)],
        unused=["main#9 GET /z"],
        redacted=1,
        network="kernel",
        files="process",
        notes=["PYTHONHASHSEED was random"],
        reads={"clock": {EXACT: 4, LIVE: 1}},
        unkept={"output": "causal", "files": "causal", "locks": "strict"},
        varied=["stderr"],
    )
    found.processes.append(found.checked("agent.py"))
    return found


def child() -> Report:
    return Report(
        "refund-7",
        "strict",
        {"http": {EXACT: 2, BLOCKED: 1}},
        [OutputCheck("stdout", True, "x" * 70, ""), OutputCheck("exit", False, "0", "killed")],
        [
            Divergence(
                "blocked",
                "blocked main#0 POST /b",
                1,
                after=True,
                difference=Difference("$.n", "1", "2"),
                nearest="main#0",
                seq=3,
            )
        ],
        unused=["main#2 GET /y"],
        redacted=2,
        notes=["the tape ends where the run was killed"],
        reads={"clock": {EXACT: 1}, "entropy": {UNUSED: 2}},
        unkept={"output": "strict", "stdin": "causal"},
        varied=["stdout"],
    )


def whole() -> Report:
    found = parent()
    found.include("child.py", child())
    found.processes.append(ProcessCheck("other.py", "not replayed", detail="it was not started"))
    return found


def test_the_text_of_a_report_on_several_processes():
    assert list(whole().lines()) == [
        "exact 5/8  moved 1  changed 0  blocked 1  live 1  unused 2",
        "  http: exact 5, moved 1, blocked 1",
        "  tool: live 1, unused 2",
        "reads: clock exact 5, live 1; entropy unused 2",
        "outputs: stdout 10 bytes identical, exit differs, exit of child.py differs",
        "process agent.py: diverged, exact 3/5",
        "process child.py: blocked, exact 2/3",
        "process other.py: not replayed, it was not started",
        "note: network blocked by the kernel, changes to files not blocked; strict order",
        "note: 3 values redacted on the tape",
        "note: stderr differs only in times and random values",
        "note: stdout in child.py differs only in times and random values",
        "note: not recorded, so not compared: output, stdin, files (level causal records them)",
        "note: not recorded, so not compared: locks (level strict records them)",
        "note: PYTHONHASHSEED was random",
        "note: child.py: the tape ends where the run was killed",
        "first divergence at step 2: moved main#1 GET /a",
        "  asked elsewhere",
        "1 more: --json lists all of them",
        "diverged at step 2, blocked after step 1 in child.py (exit 3)",
    ]


def test_the_json_of_a_report_on_several_processes():
    found = whole().to_json()
    none = {str(one): 0 for one in Fidelity}
    moved = {
        "kind": "moved",
        "what": "moved main#1 GET /a",
        "step": 2,
        "after_step": False,
        "path": None,
        "tape": None,
        "now": None,
        "nearest": None,
        "detail": "asked elsewhere",
        "process": None,
    }
    blocked = {
        "kind": "blocked",
        "what": "blocked main#0 POST /b",
        "step": 1,
        "after_step": True,
        "path": "$.n",
        "tape": "1",
        "now": "2",
        "nearest": "main#0",
        "detail": None,
        "process": "child.py",
    }
    assert found == {
        "schema_version": 1,
        "run": "refund-7",
        "verdict": "blocked",
        "exit_code": 3,
        "level": "strict",
        "asked": 8,
        "fidelity": none | {"exact": 5, "moved": 1, "blocked": 1, "live": 1, "unused": 2},
        "boundaries": {
            "http": none | {"exact": 5, "moved": 1, "blocked": 1},
            "tool": none | {"live": 1, "unused": 2},
        },
        "reads": {"clock": none | {"exact": 5, "live": 1}, "entropy": none | {"unused": 2}},
        "outputs": {
            "stdout": {"identical": True, "tape": "10 bytes", "now": "10 bytes"},
            "exit": {"identical": False, "tape": "0", "now": "1"},
            "stdout of child.py": {"identical": True, "tape": "x" * 70, "now": ""},
            "exit of child.py": {"identical": False, "tape": "0", "now": "killed"},
        },
        "first_divergence": moved,
        "divergences": [moved, blocked],
        "step_fidelity": {},
        "processes": [
            {"name": "agent.py", "verdict": "diverged", "exact": 3, "asked": 5, "detail": None},
            {"name": "child.py", "verdict": "blocked", "exact": 2, "asked": 3, "detail": None},
            {
                "name": "other.py",
                "verdict": "not replayed",
                "exact": 0,
                "asked": 0,
                "detail": "it was not started",
            },
        ],
        "unused": ["main#9 GET /z", "main#2 GET /y in child.py"],
        "redacted": 3,
        "not_kept": {"output": "causal", "stdin": "causal", "files": "causal", "locks": "strict"},
        "volatile_outputs": ["stderr", "stdout in child.py"],
        "network": "kernel",
        "files": "process",
        "edited": [],
        "other_processes": None,
        "notes": ["PYTHONHASHSEED was random", "child.py: the tape ends where the run was killed"],
    }
    bare = Report("x-1", "causal", {}, [], []).to_json()
    assert [bare[name] for name in ("first_divergence", "network", "files")] == [None] * 3
    assert bare["asked"] == 0 and bare["verdict"] == "identical"


def test_the_text_of_a_child_alone():
    assert list(child().lines()) == [
        "exact 2/3  moved 0  changed 0  blocked 1  unused 0",
        "reads: clock exact 1; entropy unused 2",
        f"outputs: stdout {'x' * 59}… identical, exit differs",
        "note: 2 values redacted on the tape",
        "note: stdout differs only in times and random values",
        "note: not recorded, so not compared: output (level strict records them)",
        "note: not recorded, so not compared: stdin (level causal records them)",
        "note: the tape ends where the run was killed",
        "first divergence after step 1: blocked main#0 POST /b",
        "  the request matches no recording; the nearest, main#0, differs in n",
        "  - recorded: 1",
        "  + now:      2",
        "diverged and blocked after step 1 (exit 3)",
    ]


@pytest.mark.parametrize(
    ("counts", "varied", "verdict", "status", "strict"),
    [
        ({EXACT: 1}, [], "identical", 0, 0),
        ({EXACT: 1, VOLATILE: 1}, [], "volatile", 0, 1),
        ({EXACT: 1}, ["stdout"], "volatile", 0, 1),
        ({BLOCKED: 1}, [], "blocked", 3, 3),
    ],
)
def test_verdicts_and_exit_codes(
    counts: dict[Fidelity, int], varied: list[str], verdict: str, status: int, strict: int
):
    report = Report("x-1", "causal", {"http": counts}, [], [], varied=varied)
    assert (report.verdict, report.exit_code) == (verdict, status)
    assert list(report.lines())[-1] == f"{verdict} (exit {status})"
    report.strict_match = True
    assert (report.verdict, report.exit_code) == (verdict, strict)
    report.divergences.append(Divergence("exit", "exit", None))
    assert report.verdict == ("blocked" if counts.get(BLOCKED) else "diverged")
    assert report.exit_code == (3 if counts.get(BLOCKED) else 1)


def test_who_refuses_both_is_said_once_and_what_is_volatile_is_counted():
    report = Report("x-1", "causal", {"http": {VOLATILE: 2}}, [], [], redacted=1)
    report.network = report.files = "kernel"
    assert list(report.lines()) == [
        "exact 0/2  volatile 2  moved 0  changed 0  blocked 0  unused 0",
        "outputs: ",
        "note: network and changes to files blocked by the kernel; causal order",
        "note: 1 value redacted on the tape",
        "volatile (exit 0)",
    ]


@pytest.mark.parametrize(
    ("step", "after", "process", "place"),
    [
        (3, False, "", "step 3"),
        (3, True, "", "after step 3"),
        (3, False, "child.py", "step 3 in child.py"),
        (3, True, "child.py", "after step 3 in child.py"),
        (None, True, "", "before step 1"),
        (None, False, "", "outside any step"),
        (None, True, "child.py", "outside any step in child.py"),
    ],
)
def test_the_place_of_a_divergence(step: int | None, after: bool, process: str, place: str):
    assert Divergence("exit", "exit", step, after, process=process).place == place


def test_reads_that_the_tape_does_not_hold_are_named_by_lane_and_counted():
    def reads(made: HandMade, *kinds: str) -> HandMade:
        made.start()
        for kind in kinds:
            made.fact(e.PLAYHEAD_READ, MAIN, attributes={a.PLAYHEAD_READ_KIND: kind})
        return made.exit(0)

    kinds = ["clock/time.time", "clock/time.time", "entropy/os.urandom/16", "entropy/random.state"]
    recorded = reads(HandMade(), *kinds)
    now = reads(
        HandMade(NOW_INSTANCE, NOW_TRACE), *kinds[:1] * 4, "entropy/random.state", "file/content x"
    )
    report = compare(recorded.tape(), now.tape(), Run.of_tape(recorded.tape(), name="x-1"))
    assert report.reads == {"clock": {EXACT: 2, LIVE: 2}, "entropy": {UNUSED: 1}}
    assert [(one.kind, one.what, one.detail) for one in report.divergences] == [
        ("live", "live time.time in main", "the tape holds 2, the program read 2 more")
    ]
    back = compare(now.tape(), recorded.tape(), Run.of_tape(now.tape(), name="x-1"))
    assert [one.what for one in back.divergences] == ["live os.urandom/16 in main"]
