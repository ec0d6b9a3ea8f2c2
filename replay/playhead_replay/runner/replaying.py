"""Starts the recorded command again, with every boundary answered from its tape."""

from __future__ import annotations

import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from playhead_core.errors import ReplayFailed, UsageError
from playhead_core.process.environment import is_kept
from playhead_core.rerun.headers import PLACEHOLDER
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_replay.report.compare import compare
from playhead_replay.report.report import ProcessCheck, Report
from playhead_replay.run.command import Command
from playhead_replay.run.inbound_requests import InboundRequest, requests_of, turned_away
from playhead_replay.run.run import Run
from playhead_replay.runner.child_processes import (
    ChildProcess,
    children_of,
    forks_below,
    matched,
    name_of,
)
from playhead_replay.runner.configuration import Environment, ReplayConfiguration, ReplayResult, Rules
from playhead_replay.runner.environment import (
    differences,
    folder_difference,
    here_from,
    moved,
    variable_differences,
)
from playhead_replay.runner.execution import FORKS_PATIENCE_S, Ended, execute, execute_warm
from playhead_replay.runner.isolation import enforced, isolated
from playhead_replay.runner.process_start import STAND_IN, Start, laid_headers, program_of
from playhead_replay.runner.requirements import (
    require_application,
    require_contained,
    require_headers,
    require_whole,
)
from playhead_replay.tape_files.tape_file import read_tape_file, read_unfinished, write_tape_file

SERVICE = "service"
"""Mode of a run whose process received requests."""

AT_ONCE = min(4, os.cpu_count() or 1)
"""Number of child processes that are executed concurrently."""

SAID_BYTES = 2000
"""Bytes of the child's stderr that are put into an error message."""


@dataclass(frozen=True, slots=True)
class Replayer:
    """Executes recorded commands again from their tapes alone, and compares the results."""

    configuration: ReplayConfiguration = field(default_factory=ReplayConfiguration)

    def replay(self, run: Run) -> ReplayResult:
        """Execute the command of ``run``, and then each of its child processes that was recorded.

        `TapeMissing`, `TapeGap`, `ScriptChanged`, `UsageError` before anything is started;
        `ReplayFailed` when the program could not be started or left no tape.
        """
        return Replay.of(run, self.configuration).execute()


@dataclass(frozen=True, slots=True)
class Replay:
    """A run that can be executed again, with everything that this takes."""

    run: Run
    configuration: ReplayConfiguration
    command: Command
    """The command, adapted to this machine."""
    folder: Path
    """Folder of the program."""
    interpreter: str
    requests: list[InboundRequest]
    """The requests that the program received; empty for a run of a whole process."""
    different: list[str]
    """Differences from the recorded environment, one line each."""
    children: list[ChildProcess]
    """The child processes of the run, in order of their start."""

    @classmethod
    def of(cls, run: Run, configuration: ReplayConfiguration) -> Replay:
        """Check that ``run`` can be executed, and report what is different here.

        `TapeMissing`, `TapeGap`, `ScriptChanged`, `UsageError` if it cannot be executed.
        """
        around, rules = configuration.environment, configuration.rules
        command = around.command_of(run.command, live=False)
        require_whole(run)
        if not rules.repeat_effects:
            require_contained(run)
        folder = _folder(command, around)
        command = moved(command, folder)
        came = run.requests
        require_headers(run, around.headers)
        if came:
            require_application(run, came)
        elif not rules.force:
            _require_process(run)
            command.require_unchanged(folder)
        interpreter = around.interpreter_of(command)
        live_model = rules.live_model
        child = around.environment_of(command, live_model=live_model)
        different = [
            *differences(run.tape, command, folder, interpreter),
            *folder_difference(run.command, folder),
            *variable_differences(moved(run.command, folder), around.inherited, child),
        ]
        for one in different:
            configuration.say(one)
        places = here_from(run.command, folder)
        children = list(children_of(run, places, interpreter, folder, force=rules.force))
        return cls(run, configuration, command, folder, interpreter, came, different, children)

    def execute(self) -> ReplayResult:
        """Run the program and its children. `ReplayFailed` if it does not start or leaves no tape."""
        with tempfile.TemporaryDirectory(prefix="playhead-replay-") as temporary:
            processes = _Processes(self, Path(temporary))
            started = [child for child in self.children if not child.within]
            for child in started:
                processes.prepare(child.tape.instance.hex(), child.tape)
            scratch = processes.prepare("first", self.run.tape)
            live_model = self.configuration.rules.live_model
            environ = self.configuration.environment.environment_of(self.command, live_model=live_model)
            program = program_of(self.command, self.requests)
            start = Start(self.interpreter, program, environ, self.folder, scratch, self.command.options)
            done, told = processes.replayed(start, self.configuration.keep)
            report = done.report
            if self.requests:
                headers = self.configuration.environment.headers
                report.notes += turned_away(self.requests, requests_of(done.now), headers)
            if self.children:
                report.processes.append(report.checked(name_of(self.command)))
            with ThreadPoolExecutor(AT_ONCE) as pool:
                for found in pool.map(processes.child, started):
                    told |= found
        for child in self.children:
            found = told.get(child.name, "it was not forked")
            if isinstance(found, Report):
                report.include(child.name, found)
            else:
                report.processes.append(ProcessCheck(child.name, "not replayed", detail=found))
        self._conclude(report, self.configuration.rules)
        return done

    def _conclude(self, report: Report, rules: Rules) -> None:
        report.notes += self.different
        if real := list(rules.real()):
            report.notes.append(f"allowed to run for real: {', '.join(real)}")
        report.strict_match = rules.strict_match


@dataclass(frozen=True, slots=True)
class _Processes:
    """The processes of a replay, each with its files in a folder of its own."""

    replay: Replay
    scratch: Path
    forks: dict[Path, list[ChildProcess]] = field(default_factory=dict[Path, list[ChildProcess]])
    """Forks of each process, by the folder with the files of that process."""

    def prepare(self, name: str, tape: IndexedTape) -> Path:
        """Write what a process and its forks need into a new folder. Returns the folder."""
        folder = self.scratch / name
        folder.mkdir()
        write_tape_file(folder / "recorded.tape", tape)
        forks = forks_below(tape, self.replay.children)
        if forks:
            write_tape_file(folder / "forks.tape", [one.tape for one in forks])
        self.forks[folder] = forks
        return folder

    def replayed(
        self, start: Start, keep: Path | None = None
    ) -> tuple[ReplayResult, dict[str, Report | str]]:
        """Run one process.

        Returns its result, and the reports on its forks by name. ``keep``: an additional path for its
        new tape.
        """
        run, scratch = self.replay.run, start.scratch
        recorded, now, said = (scratch / name for name in ("recorded.tape", "now.tape", "enforced"))
        forks = self.forks[scratch]
        done = self._executed(start)
        if keep is not None and now.exists():
            shutil.copyfile(now, keep)
        tape = read_tape_file(recorded).tape
        result = _result(run, tape, now, done)
        by_kernel = enforced(said)
        result.report.network = "kernel" if "network" in by_kernel else "process"
        result.report.files = "kernel" if "files" in by_kernel else "process"
        result.report.others = "kernel" if "processes" in by_kernel else "process"
        told: dict[str, Report | str] = {}
        if forks:
            whole = {one.instance: one for one in read_tape_file(scratch / "forks.tape").tapes}
            left = [read_unfinished(path).tape for path in scratch.glob("now.*.tape")]
            for fork, found in matched(tape, result.now, forks, left):
                if found is not None:
                    told[fork.name] = compare(whole[fork.tape.instance], found, run)
        return result, told

    def child(self, child: ChildProcess) -> dict[str, Report | str]:
        """Replay a child process.

        Returns the reports on it and its forks by name, or the reason why there is none.
        """
        if child.why_not:
            return {child.name: child.why_not}
        around = self.replay.configuration.environment
        live_model = self.replay.configuration.rules.live_model
        command = around.command_of(child.command, live=False)
        environ = around.environment_of(command, live_model=live_model)
        environ.update(
            (name, STAND_IN if value == PLACEHOLDER else value)
            for name, value in child.environment.items()
            if not is_kept(name) and not around.foreign
        )
        interpreter = around.python or self.replay.interpreter
        if child.is_service:
            interpreter = around.interpreter_of(command)
        own = self.scratch / child.tape.instance.hex()
        program = program_of(child.command, requests_of(child.tape))
        start = Start(interpreter, program, environ, child.folder, own, child.command.options)
        try:
            done, told = self.replayed(start)
        except ReplayFailed as problem:
            return {child.name: problem.what}
        return {child.name: done.report, **told}

    def _executed(self, start: Start) -> Ended:
        scratch, forks = start.scratch, self.forks[start.scratch]
        configuration = self.replay.configuration
        options, withheld = configuration.rules.words(), configuration.rules.withheld
        asked = [*self._asked(start), *options, "--", *start.program]
        warm = configuration.warm
        if warm is not None and not self.replay.children and not options:
            done = execute_warm(warm, start, asked, withheld)
            if done is not None:
                return done
        words = isolated(
            scratch,
            scratch / "enforced",
            network=withheld.network,
            files=withheld.files,
            wait_s=FORKS_PATIENCE_S if forks else 0.0,
        )
        words += [start.interpreter, *start.options, "-m", "playhead_instrumentation", "replay", *asked]
        return execute(start, words, forks=bool(forks))

    def _asked(self, start: Start) -> list[str]:
        """The files of a process as command-line options; its output goes into a new folder."""
        scratch = start.scratch
        written = scratch / "written"
        written.mkdir()
        words = ["--tape", str(scratch / "recorded.tape"), "--now", str(scratch / "now.tape")]
        words += ["--scratch", str(written)]
        if self.forks[scratch]:
            words += ["--forks", str(scratch / "forks.tape")]
        if headers := self.replay.configuration.environment.headers:
            words += ["--headers", str(laid_headers(scratch, headers))]
        if self.replay.run.trace_id:
            words += ["--origin", _run_id(self.replay.run)]
        return words


def _require_process(run: Run) -> None:
    """`UsageError` if the run is that of a service, or only a part of what its process did."""
    if run.mode == SERVICE or not _is_of_process(run):
        raise UsageError(
            f"{run.name} is a process that serves requests: each of them is a run of its own",
            hint="replay one of them: playhead ls",
        )


def _is_of_process(run: Run) -> bool:
    """Whether the run covers everything its first process did."""
    start = next(run.tape.facts()).trace_id
    return not any(start) or not run.trace_id or start.hex() == run.trace_id


def _folder(command: Command, around: Environment) -> Path:
    folder = Path(around.folder or command.cwd or ".")
    if not os.path.isdir(folder):
        raise UsageError(
            f"the folder of the run does not exist: {folder}",
            hint="name the folder of the program: playhead replay RUN --cwd FOLDER",
        )
    return folder


def _run_id(run: Run) -> str:
    root = run.roots[0].span_id if run.roots else "0" * 16
    return f"{run.trace_id}-{root}"


def _result(run: Run, tape: IndexedTape, now: Path, done: Ended) -> ReplayResult:
    said = done.stderr[-SAID_BYTES:].decode(errors="replace").strip()
    if not now.exists():
        raise ReplayFailed(
            f"{run.name} could not be started again (exit {done.returncode})",
            cause=said.splitlines()[-1] if said else "it left no tape and printed nothing",
            hint="is playhead-agent installed there? playhead replay RUN --python PATH",
        )
    played = read_unfinished(now)
    if len(played.tape) == 0:
        raise ReplayFailed(
            f"{run.name} ended before its first fact (exit {done.returncode})",
            cause=said.splitlines()[-1] if said else played.damage,
            hint="playhead doctor SCRIPT",
        )
    report = compare(tape, played.tape, run)
    if played.damage:
        report.notes.append(played.damage)
    return ReplayResult(report, played.tape, done.returncode, done.stdout, done.stderr, done.warm)
