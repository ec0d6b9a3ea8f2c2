"""The pytest plugin: ``def test_refund(tape): run = tape.replay("refund")``.

Nothing goes live unless ``--playhead-record`` is given. What a test did to goldens is stored in its
report, so that it also works under xdist and in the JUnit file.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace as changed
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import pytest

from playhead_replay.goldens.golden_file import read_golden, write_golden
from playhead_replay.goldens.golden_paths import FOLDER, own_name, place_of
from playhead_replay.goldens.merging import answered, below
from playhead_replay.goldens.replayed_golden import Expectation, ReplayedGolden, failure
from playhead_replay.launch.configuration import ReplayConfiguration, ReplayResult, Rules, Surroundings
from playhead_replay.launch.replaying import Replayer
from playhead_replay.launch.warm_processes import Warm
from playhead_replay.report.report import Report
from playhead_replay.run.run import Run
from playhead_replay.tape_files.tape_file import COMPRESSED, SUFFIX, read_tape_file, read_unfinished
from playhead_semconv.errors import PlayheadError, ReplayFailed, TapeMissing
from playhead_semconv.untrusted.shown_text import visible

Event: TypeAlias = Literal["used", "created", "updated"]
PROPERTY = "playhead"
FAILED = Path(".playhead") / "failed"
ALLOWED_IN_CI = "PLAYHEAD_PYTEST_RECORD"
MARKS = ("command", "cwd", "unused", "outcome", "edited", "allow", "checks", "headers")
"""Keywords of ``pytest.mark.playhead``."""

_happened = pytest.StashKey[dict[str, set[str]]]()
_warm = pytest.StashKey[Warm]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options, all of which begin with ``--playhead``."""
    group = parser.getgroup("playhead", "goldens of LLM agents")
    group.addoption(
        "--playhead-update",
        action="store_true",
        help="accept changed outcomes of goldens; nothing goes live",
    )
    group.addoption(
        "--playhead-record",
        choices=("missing", "all"),
        help="go live and record the goldens of the selected tests: those that are missing, or all",
    )
    group.addoption(
        "--playhead-prune",
        action="store_true",
        help="delete goldens that no test used; only after a whole run that passed",
    )
    group.addoption(
        "--playhead-trace-id",
        metavar="ID",
        help="replay this run of the store instead of the golden",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker; refuse to go live unless it was requested."""
    config.addinivalue_line(
        "markers",
        "playhead(name, command=…, cwd=…, unused='fail'|'allow', outcome='same'|'changed', "
        "edited='fail'|'allow', allow=[HOST, …], checks=[FILE, …], headers={NAME: VALUE}): the golden "
        "of a test, what may differ, what has to hold, what a request is asked with",
    )
    config.stash[_happened] = {}
    config.stash[_warm] = Warm()
    if config.getoption("--playhead-record") and _truth("CI") and not _truth(ALLOWED_IN_CI):
        raise pytest.UsageError(
            f"--playhead-record goes live, which is refused under CI unless {ALLOWED_IN_CI}=1"
        )


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the warm processes."""
    if _warm in config.stash:
        config.stash[_warm].close()


def _truth(name: str) -> bool:
    return os.environ.get(name, "").lower() not in ("", "0", "false", "no")


class Tapes:
    """The fixture ``tape``: the goldens of a test."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request
        self._config = request.config
        mark = request.node.get_closest_marker("playhead")
        named = cast("tuple[Any, ...]", mark.args) if mark is not None else ()
        self._marked: dict[str, Any] = dict(mark.kwargs) if mark is not None else {}
        unknown = [key for key in self._marked if key not in MARKS]
        if unknown or len(named) > 1:
            known = ", ".join(MARKS)
            raise pytest.UsageError(
                f"pytest.mark.playhead takes a name and {known}; not {', '.join(unknown) or named}"
            )
        self._name = str(named[0]) if named else ""

    def path(self, name: str = "") -> Path:
        """Path of the golden with this name; without a name, of this test's own golden."""
        file: Path = self._request.path
        if name or self._name:
            return place_of(file, name or self._name)
        node: Any = self._request.node
        call = getattr(node, "callspec", None)
        parameters: dict[str, Any] = dict(call.params) if call is not None else {}
        return place_of(file, own_name(file, getattr(node, "originalname", "") or node.name, parameters))

    def replay(
        self,
        name: str | Path = "",
        *,
        command: Sequence[str] | None = None,
        cwd: str | Path | None = None,
        unused: Literal["fail", "allow"] | None = None,
        outcome: Literal["same", "changed"] | None = None,
        edited: Literal["fail", "allow"] | None = None,
        allow: Sequence[str] | None = None,
        checks: Sequence[str | Path] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ReplayedGolden:
        """Run the golden's program with its current code, answered only from the golden.

        ``name``: name of the golden, or the path of its file; by default this test's own golden.
        ``command``, ``cwd``: how the program is started when the golden is recorded. ``unused="allow"``:
        the program may ask for less. ``outcome="changed"``: its output, states and exit status may
        differ. ``edited="allow"``: edits at the fork that the golden was made from may answer; pytest
        warns about it. ``allow``: hosts that may be reached when the golden has no answer. ``checks``:
        files with functions under ``@playhead.check``, relative to pytest's root, which inspect each
        span. ``headers``: headers for a request to a service, such as a credential that the golden
        withholds.

        Fails the test if anything else differs, even if the agent swallows the error.
        """
        __tracebackhide__ = True
        name = os.fspath(name)
        is_path = name.endswith((SUFFIX, f"{SUFFIX}{COMPRESSED}"))
        golden = Path(name).absolute() if is_path else self.path(name)
        expected = self._expectation(unused, outcome, edited)
        words = list(command or self._marked.get("command") or ())
        folder = Path(cwd or self._marked.get("cwd") or self._config.rootpath)
        try:
            self._record_where_asked(golden, words, folder)
            rules = Rules(
                allow=list(allow or self._marked.get("allow") or ()),
                force=True,
                checks=[
                    self._config.rootpath / path for path in checks or self._marked.get("checks") or ()
                ],
            )
            given = dict(headers or self._marked.get("headers") or {})
            return self._replayed(golden, expected, rules, given)
        except PlayheadError as found:
            problem = found
        said = str(problem)
        stored = self._config.getoption("--playhead-trace-id")
        if isinstance(problem, TapeMissing) and not golden.exists() and not stored:
            said = (
                f"error[tape-missing]: no golden at {_short(golden)}\n"
                f"hint: pytest {self._request.node.nodeid} --playhead-record=missing\n"
                f"hint: playhead golden add RUN --name {golden.name.partition('.')[0]}"
            )
        pytest.fail(visible(said), pytrace=False)

    def _expectation(
        self,
        unused: Literal["fail", "allow"] | None,
        outcome: Literal["same", "changed"] | None,
        edited: Literal["fail", "allow"] | None,
    ) -> Expectation:
        expected = Expectation()
        for key, value in (("unused", unused), ("outcome", outcome), ("edited", edited)):
            value = value or self._marked.get(key)
            if value is not None:
                expected = changed(expected, **{key: value})
        return expected

    def _replayed(
        self, golden: Path, expected: Expectation, rules: Rules, headers: dict[str, str]
    ) -> ReplayedGolden:
        __tracebackhide__ = True
        trace_id = self._config.getoption("--playhead-trace-id")
        with tempfile.TemporaryDirectory(prefix="playhead-golden-") as scratch:
            if trace_id:
                run = _from_store(str(trace_id), Path(scratch))
                folder = Path(run.command.cwd)
            else:
                run, folder = read_golden(golden)
                self._note("used", golden)
            kept = Path(scratch, "now.tape")
            lowered = {key.lower(): value for key, value in headers.items()}
            around = Surroundings(sys.executable, folder, headers=lowered)
            done = self._again(run, ReplayConfiguration(around, rules, keep=kept))
            now = Run.of_tapes(read_unfinished(kept).tapes, name=run.name)
            seen = ReplayedGolden(golden, run, now, done, self._request.node.nodeid)
            broken = expected.broken(done.report)
            if broken and not trace_id and self._config.getoption("--playhead-update"):
                outcome = changed(expected, outcome="changed").broken(done.report)
                if not outcome:
                    write_golden(golden, _answered(run, now), compressed=golden.suffix != SUFFIX)
                    self._note("updated", golden)
                    broken = []
            if broken:
                place = self._keep(golden, kept)
                node = self._request.node.nodeid
                pytest.fail(failure(golden, done.report, broken, place, node), pytrace=False)
            if done.report.edited:
                _rests_on_an_edit(golden, done.report, expected)
            return seen

    def _again(self, run: Run, cold: ReplayConfiguration) -> ReplayResult:
        """Replay with warm processes where possible; if that differs, replay again in a cold process."""
        try:
            done = Replayer(changed(cold, warm=self._config.stash[_warm])).replay(run)
            if not (done.warm and done.report.divergences):
                return done
        except ReplayFailed:
            pass
        return Replayer(cold).replay(run)

    def _keep(self, golden: Path, tape: Path) -> Path:
        folder = self._config.rootpath / FAILED
        folder.mkdir(parents=True, exist_ok=True)
        place = folder / f"{golden.name.partition('.')[0]}{SUFFIX}"
        partial = place.with_name(f"{place.name}.{os.getpid()}.part")
        partial.write_bytes(tape.read_bytes())
        os.replace(partial, place)
        return place

    def _record_where_asked(self, golden: Path, words: list[str], folder: Path) -> None:
        __tracebackhide__ = True
        asked = self._config.getoption("--playhead-record")
        there = golden.exists()
        if asked is None or (asked == "missing" and there):
            return
        if there and not words:
            recorded, folder = read_golden(golden)
            words = recorded.command.words()
        if not words:
            pytest.fail(
                "a golden can only be recorded where it is known how its program is started: "
                'tape.replay(command=["agent.py"])',
                pytrace=False,
            )
        with tempfile.TemporaryDirectory(prefix="playhead-golden-") as scratch:
            live = Path(scratch, "live.tape")
            start = [sys.executable, "-m", "playhead_instrumentation", "record", "--tape", str(live)]
            mine = {name: it for name, it in os.environ.items() if not name.startswith("PYTEST_")}
            environ = {**mine, "PLAYHEAD_LEVEL": "strict", "PYTHONHASHSEED": "0"}
            done = subprocess.run([*start, "--", *words], cwd=folder, env=environ, capture_output=True)
            if not live.exists():
                said = done.stderr.decode(errors="replace")
                pytest.fail(f"{' '.join(words)} could not be recorded:\n{visible(said)}", pytrace=False)
            # Forks write their own tapes beside it.
            files = [live, *sorted(Path(scratch).glob("live.*.tape"))]
            run = Run.of_tapes([tape for file in files for tape in read_unfinished(file).tapes])
            write_golden(golden, run, compressed=golden.suffix != SUFFIX)
        self._note("updated" if there else "created", golden)

    def _note(self, event: Event, golden: Path) -> None:
        self._request.node.user_properties.append((PROPERTY, f"{event} {golden}"))


class RestsOnAnEdit(UserWarning):
    """A golden made from an edited fork shows what would happen, not what the program does."""


def _rests_on_an_edit(golden: Path, report: Report, expected: Expectation) -> None:
    __tracebackhide__ = True
    said = f"{_short(golden)}: {report.said_of_edits}"
    if expected.edited == "allow":
        warnings.warn(RestsOnAnEdit(visible(said)), stacklevel=2)
        return
    hint = 'hint: mend the program, make the golden of a run of it; or: tape.replay(…, edited="allow")'
    pytest.fail(visible(f"{said}\n{hint}"), pytrace=False)


def _answered(recorded: Run, now: Run) -> Run:
    """The replayed run, with the bytes that its tape refers to put in."""
    tapes = [answered(recorded.tapes, tape) for tape in now.tapes]
    first = recorded.tape
    others = [below(first, now.tape, tape) for tape in recorded.tapes if tape.instance != first.instance]
    return Run.of_tapes([*tapes, *others], name=recorded.name)


def _from_store(name: str, scratch: Path) -> Run:
    path = scratch / "stored.tape"
    words = [sys.executable, "-m", "playhead_cli", "export", name, "-o", str(path)]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise TapeMissing(
            f"{name} is not to be had from the store", cause=done.stderr.strip().splitlines()[0]
        )
    found = read_tape_file(path)
    return Run.of_tapes(found.tapes, found.spans, name)


def _short(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


@pytest.fixture
def tape(request: pytest.FixtureRequest) -> Tapes:
    """The goldens of this test: ``tape.replay()`` or ``tape.replay("NAME")``."""
    return Tapes(request)


class GoldenSummary:
    """Collects what tests did to goldens, and reports it at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._happened: dict[str, set[str]] = config.stash[_happened]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect what a test did."""
        if report.when == "call":
            for name, value in report.user_properties:
                if name == PROPERTY:
                    event, _, path = str(value).partition(" ")
                    self._happened.setdefault(event, set()).add(path)

    def pytest_terminal_summary(self, terminalreporter: Any, exitstatus: int) -> None:
        """List every golden that was created, updated or deleted."""
        pruned = self._prune(terminalreporter, exitstatus)
        for event, paths in (
            ("created", self._happened.get("created", set())),
            ("updated", self._happened.get("updated", set())),
            ("pruned", pruned),
        ):
            for path in sorted(paths):
                terminalreporter.write_line(f"playhead: {event} {_short(Path(path))}")

    def _prune(self, terminalreporter: Any, exitstatus: int) -> set[str]:
        if not self._config.getoption("--playhead-prune"):
            return set()
        stats = cast("dict[str, list[Any]]", terminalreporter.stats)
        narrowed = any(
            self._config.getoption(name, None) for name in ("keyword", "markexpr", "lf", "failedfirst")
        )
        given = self._config.args_source is pytest.Config.ArgsSource.ARGS
        if exitstatus or narrowed or given or stats.get("deselected") or stats.get("skipped"):
            terminalreporter.write_line(
                "playhead: nothing pruned: only a whole run that passes tells what is not used"
            )
            return set()
        used = {Path(path) for path in self._happened.get("used", set())}
        folders = {parent for path in used for parent in path.parents if parent.name == FOLDER}
        unused = {
            path
            for folder in folders
            for path in folder.rglob(f"*{SUFFIX}*")
            if path.is_file() and path not in used
        }
        for path in unused:
            path.unlink()
        return {str(path) for path in unused}


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Register the summary; not in a worker of xdist, because reports arrive at the controller."""
    if not hasattr(session.config, "workerinput"):
        session.config.pluginmanager.register(GoldenSummary(session.config), "playhead-summary")
