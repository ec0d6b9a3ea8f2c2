"""The fixture ``tape``: the goldens of a test, replayed, judged, recorded and written again."""

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

from playhead_core.errors import PlayheadError, ReplayFailed, TapeMissing
from playhead_core.untrusted.shown_text import visible
from playhead_replay.goldens.conditions import unfulfilled
from playhead_replay.goldens.golden_file import (
    Purpose,
    StoredGolden,
    read_golden,
    read_stored,
    write_golden,
)
from playhead_replay.goldens.golden_paths import folder_of_failed, own_name, place_of, short
from playhead_replay.goldens.recorded_tools import RecordedTools
from playhead_replay.goldens.renewal import renewed
from playhead_replay.goldens.replayed_golden import Expectation, Failing, ReplayedGolden
from playhead_replay.report.report import Report
from playhead_replay.run.run import Run
from playhead_replay.runner.configuration import Environment, ReplayConfiguration, ReplayResult, Rules
from playhead_replay.runner.replaying import Replayer
from playhead_replay.runner.warm_processes import Warm
from playhead_replay.tape_files.tape_file import COMPRESSED, SUFFIX, read_tape_file, read_unfinished

Event: TypeAlias = Literal["used", "created", "updated"]
PROPERTY = "playhead"
"""Name of the properties of a test that say what it did to goldens."""
MARKS = ("command", "cwd", "unused", "outcome", "edited", "allow", "checks", "headers")
"""Keywords of ``pytest.mark.playhead``."""

WARM = pytest.StashKey[Warm]()
"""The warm processes of a session."""


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

    def tools(self, name: str | Path = "") -> RecordedTools:
        """The tools of a golden as functions that answer from it by their arguments; nothing is run.

        ``tape.tools("refund")["look"](order=81)`` is what ``look`` gave when the golden was recorded:
        plain values where it is marked with ``@playhead.tool``, else the text that the model received.
        ``name``: as in `replay`.
        """
        __tracebackhide__ = True
        golden = self._golden(name)
        try:
            tools = RecordedTools(read_golden(golden)[0])
        except PlayheadError as problem:
            pytest.fail(visible(self._said_of(problem, golden)), pytrace=False)
        self._note("used", golden)
        return tools

    def _golden(self, name: str | Path) -> Path:
        """Path of a golden by its name or path; without, of this test's own."""
        text = os.fspath(name)
        is_path = text.endswith((SUFFIX, f"{SUFFIX}{COMPRESSED}"))
        return Path(text).absolute() if is_path else self.path(text)

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
        differ, as they may where the golden says what is expected instead. ``edited="allow"``: edits at
        the fork that the golden was made from may answer; pytest warns about it. ``allow``: hosts that
        may be reached when the golden has no answer. ``checks``: files with functions under
        ``@playhead.check``, relative to pytest's root, which inspect each span. ``headers``: headers for
        a request to a service, such as a credential that the golden withholds.

        Fails the test if anything else differs, even if the agent swallows the error.
        """
        __tracebackhide__ = True
        golden = self._golden(name)
        expected = self._expectation(unused, outcome, edited)
        words = list(command or self._marked.get("command") or ())
        folder = Path(cwd or self._marked.get("cwd") or self._config.rootpath)
        try:
            self._record_where_asked(golden, words, folder)
            rules = Rules(
                allow=list(allow or self._marked.get("allow") or ()),
                live_model=self._live_model,
                force=True,
                checks=[
                    self._config.rootpath / path for path in checks or self._marked.get("checks") or ()
                ],
            )
            given = dict(headers or self._marked.get("headers") or {})
            return self._replayed(golden, expected, rules, given)
        except PlayheadError as found:
            problem = found
        pytest.fail(visible(self._said_of(problem, golden)), pytrace=False)

    def _said_of(self, problem: PlayheadError, golden: Path) -> str:
        """A problem with a golden; where it is missing, how it is made."""
        stored = self._config.getoption("--playhead-trace-id")
        if not isinstance(problem, TapeMissing) or golden.exists() or stored:
            return str(problem)
        return (
            f"error[tape-missing]: no golden at {short(golden)}\n"
            f"hint: pytest {self._request.node.nodeid} --playhead-record=missing\n"
            f"hint: playhead golden add RUN --name {golden.name.partition('.')[0]}"
        )

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
            stored = self._stored(golden, str(trace_id or ""), Path(scratch))
            kept = Path(scratch, "now.tape")
            lowered = {key.lower(): value for key, value in headers.items()}
            around = Environment(sys.executable, stored.folder, headers=lowered)
            done = self._again(stored.run, ReplayConfiguration(around, rules, keep=kept))
            now = Run.of_tapes(read_unfinished(kept).tapes, name=stored.run.name)
            seen = ReplayedGolden(golden, stored.run, now, done, self._request.node.nodeid)
            if stored.purpose.expect:
                expected = expected.without_outcome()
            self._judge(seen, stored, expected, kept, anew=not trace_id)
            return seen

    def _judge(
        self,
        seen: ReplayedGolden,
        stored: StoredGolden,
        expected: Expectation,
        kept: Path,
        *,
        anew: bool,
    ) -> None:
        """Fail the test where the replay is not as it should be.

        ``kept``: its tape. ``anew``: whether the golden may be written again, if pytest is told so.
        """
        __tracebackhide__ = True
        golden, report = seen.golden, seen.report
        broken = expected.broken(report, live_model=self._live_model)
        wrong = unfulfilled(seen, stored.purpose.expect)
        if anew and self._config.getoption("--playhead-update") and not wrong:
            left = changed(expected, outcome="changed").broken(report)
            differs = broken or (stored.purpose.expect and report.divergences)
            if differs and not left:
                packed, purpose = golden.suffix != SUFFIX, stored.purpose
                run = renewed(stored.run, seen.run)
                write_golden(golden, run, compressed=packed, purpose=purpose)
                self._note("updated", golden)
                broken = []
        if broken or wrong:
            failing = Failing(golden, self._request.node.nodeid, self._keep(golden, kept))
            said = failing.diverged(report, broken) if broken else failing.unfulfilled(wrong)
            pytest.fail(said, pytrace=False)
        if report.edited:
            _rests_on_an_edit(golden, report, expected)

    @property
    def _live_model(self) -> bool:
        return self._config.getoption("--playhead-live") == "model"

    def _stored(self, golden: Path, trace_id: str, scratch: Path) -> StoredGolden:
        """The golden, or the run of the store that takes its place."""
        if trace_id:
            run = _from_store(trace_id, scratch)
            return StoredGolden(run, Path(run.command.cwd), Purpose())
        found = read_stored(golden)
        self._note("used", golden)
        return found

    def _again(self, run: Run, cold: ReplayConfiguration) -> ReplayResult:
        """Replay with warm processes where possible; if that differs, replay again in a cold process."""
        try:
            done = Replayer(changed(cold, warm=self._config.stash[WARM])).replay(run)
            if not (done.warm and done.report.divergences):
                return done
        except ReplayFailed:
            pass
        return Replayer(cold).replay(run)

    def _keep(self, golden: Path, tape: Path) -> Path:
        place = folder_of_failed(self._config.rootpath) / f"{golden.name.partition('.')[0]}{SUFFIX}"
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
        purpose = Purpose()
        if there:
            stored = read_stored(golden)
            purpose = stored.purpose
            if not words:
                words, folder = stored.run.command.words(), stored.folder
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
            write_golden(golden, run, compressed=golden.suffix != SUFFIX, purpose=purpose)
        self._note("updated" if there else "created", golden)

    def _note(self, event: Event, golden: Path) -> None:
        self._request.node.user_properties.append((PROPERTY, f"{event} {golden}"))


class RestsOnAnEdit(UserWarning):
    """A golden made from an edited fork shows what would happen, not what the program does."""


def _rests_on_an_edit(golden: Path, report: Report, expected: Expectation) -> None:
    __tracebackhide__ = True
    said = f"{short(golden)}: {report.edit_note}"
    if expected.edited == "allow":
        warnings.warn(RestsOnAnEdit(visible(said)), stacklevel=2)
        return
    hint = 'hint: mend the program, make the golden of a run of it; or: tape.replay(…, edited="allow")'
    pytest.fail(visible(f"{said}\n{hint}"), pytrace=False)


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
