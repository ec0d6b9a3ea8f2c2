"""Start the recorded command again, with every boundary answered from its tape."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from playhead_replay.launch.child_processes import (
    ChildProcess,
    children_of,
    forks_below,
    matched,
    name_of,
)
from playhead_replay.launch.isolation import enforceable, enforced, isolated
from playhead_replay.launch.surroundings import differences, here_from, moved
from playhead_replay.launch.warm_processes import Warm
from playhead_replay.report.compare import compare
from playhead_replay.report.report import ProcessCheck, Report
from playhead_replay.run.command import Command
from playhead_replay.run.inbound_requests import InboundRequest, requests_of, turned_away
from playhead_replay.run.run import Run, gaps_of
from playhead_replay.tape_files.tape_file import read_tape_file, read_unfinished, write_tape_file
from playhead_semconv import attributes as a
from playhead_semconv.boundaries import had
from playhead_semconv.errors import ReplayFailed, TapeGap, TapeMissing, UsageError
from playhead_semconv.process.kept_environment import is_kept
from playhead_semconv.rerun.given_headers import PLACEHOLDER, write_headers
from playhead_semconv.tape.indexed_tapes import IndexedTape
from playhead_semconv.tape.slices import AGED_OUT

STAND_IN = "playhead-replay"
"""Value of a credential that the program needs to start and the tape does not hold."""

CREDENTIALS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
"""Set to the stand-in where the tape does not say which variables the program had."""

DROPPED = ("TRACEPARENT", "TRACESTATE", "OTEL_", "PLAYHEAD_")
"""Variables, by how they begin, that are the launcher's own and not the program's."""

STARTERS = (
    os.path.join("opentelemetry", "instrumentation", "auto_instrumentation"),
    os.path.join("playhead_instrumentation", "bootstrap", "site"),
)
"""Folders on PYTHONPATH, by their end, that made the recorded program record itself."""

SERVICE = "service"
"""Mode of the run of a process to which requests came."""

AT_ONCE = min(4, os.cpu_count() or 1)
"""So many children of a run are executed side by side."""

FORKS_PATIENCE_S = 30.0
"""So long forks may outlive the process they come from."""

HELD = "PLAYHEAD_REPLAY_HELD"
"""Variable that tells a replay which descriptor all its processes hold until they end."""

SAID_BYTES = 2000
"""How much of the child's stderr goes into an error."""


@dataclass(frozen=True, slots=True)
class Replay:
    """A replay that has ended."""

    report: Report
    now: IndexedTape
    """The tape of the replay."""
    returncode: int
    """Exit status of the child, negative for a signal."""
    stdout: bytes
    stderr: bytes
    warm: bool = False
    """Whether it was the fork of a process that had waited."""


def replay(
    run: Run,
    *,
    python: str = "",
    cwd: str = "",
    environ: Mapping[str, str] | None = None,
    force: bool = False,
    keep: Path | None = None,
    live: Collection[str] = (),
    allow: Collection[str] = (),
    repeat_effects: bool = False,
    checks: Collection[str | Path] = (),
    headers: Mapping[str, str] = {},
    say: Callable[[str], None] | None = None,
    warm: Warm | None = None,
    foreign: bool = False,
) -> Replay:
    """Execute the recorded command of ``run`` again, from its tape alone, and compare.

    So are, one by one, the processes that it started and that were recorded themselves.
    ``python``: the agent's interpreter, by default the recorded one. ``cwd``: where the program lies,
    by default the recorded folder. ``force``: replay a changed script too. ``keep``: where the tape of
    the replay is written. ``live``: tools that run for real; ``allow``: hosts that may be reached where
    the tape does not answer. ``repeat_effects``: where neither the tape nor the kernel can keep files
    from being changed, they are. ``checks``: files of check functions that look at each span.
    ``environ``: what the child inherits, by default this process's environment. ``headers``: what a
    request to a service is asked with in the place of its own, by name in lower case.
    ``warm``: what may spare the process the import of its libraries.
    ``foreign``: somebody else has recorded it, so neither interpreter nor every variable is taken.
    ``say`` is told what is different from the recording, before anything is started.

    `TapeMissing`, `TapeGap`, `ScriptChanged` before anything is started; `ReplayFailed` when the
    program could not be started or left no tape.
    """
    command = run.command.from_elsewhere(live=False) if foreign else run.command
    require_whole(run)
    if not repeat_effects:
        require_contained(run)
    folder = _folder(command, cwd)
    command = moved(command, folder)
    came = run.requests
    require_headers(run, headers)
    if came:
        require_application(run, came)
    elif not force and (run.mode == SERVICE or not _is_of_process(run)):
        raise UsageError(
            f"{run.name} is a process that serves requests: each of them is a run of its own",
            hint="replay one of them: playhead ls",
        )
    elif not force:
        command.require_unchanged(folder)
    interpreter = interpreter_for(command, python)
    different = list(differences(run, command, folder, interpreter))
    if say is not None:
        for one in different:
            say(one)
    children = list(children_of(run, here_from(run.command, folder), interpreter, folder, force=force))
    files = [os.path.abspath(path) for path in checks]
    again = _Again(
        run,
        not (live or allow),
        not live,
        os.environ if environ is None else environ,
        [
            word
            for option, names in (("--live", live), ("--allow", allow), ("--check", files))
            for name in names
            for word in (option, name)
        ],
        headers,
        None if children else warm,
        foreign,
    )
    with tempfile.TemporaryDirectory(prefix="playhead-replay-") as temporary:
        scratch = Path(temporary)
        started = [child for child in children if not child.within]
        for child in started:
            again.prepare(scratch / child.tape.instance.hex(), child.tape, children)
        again.prepare(scratch / "first", run.tape, children)
        words = [interpreter, *_program(command, came)]
        done, told = again.replayed(
            scratch / "first", words, child_environment(command, again.environ), folder, keep
        )
        report = done.report
        if came:
            report.notes += turned_away(came, requests_of(done.now), headers)
        if children:
            report.processes.append(report.checked(name_of(command)))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for found in pool.map(partial(again.child, python or interpreter, scratch), started):
                told |= found
    for child in children:
        found = told.get(child.name, "it was not forked")
        if isinstance(found, Report):
            report.include(child.name, found)
        else:
            report.processes.append(ProcessCheck(child.name, "not replayed", detail=found))
    report.notes += different
    real = [f"tool {name}" for name in live] + [f"host {name}" for name in allow]
    if real:
        report.notes.append(f"allowed to run for real: {', '.join(real)}")
    return done


@dataclass(frozen=True, slots=True)
class _Again:
    """Executes processes of a run again."""

    run: Run
    no_network: bool
    no_changes: bool
    """Of files."""
    environ: Mapping[str, str]
    options: list[str]
    headers: Mapping[str, str]
    warm: Warm | None = None
    foreign: bool = False
    forks: dict[Path, list[ChildProcess]] = field(default_factory=dict[Path, list[ChildProcess]])
    """Of the process whose files are in a folder."""

    def prepare(self, scratch: Path, tape: IndexedTape, children: Sequence[ChildProcess]) -> None:
        """Write what a process and its forks need into a new folder."""
        scratch.mkdir()
        write_tape_file(scratch / "recorded.tape", tape)
        forks = forks_below(tape, children)
        if forks:
            write_tape_file(scratch / "forks.tape", [one.tape for one in forks])
        self.forks[scratch] = forks

    def replayed(
        self,
        scratch: Path,
        words: list[str],
        environ: dict[str, str],
        folder: Path,
        keep: Path | None = None,
    ) -> tuple[Replay, dict[str, Report | str]]:
        """One process, and the reports on its forks by name. ``words``: interpreter and command line."""
        recorded, now, said = (scratch / name for name in ("recorded.tape", "now.tape", "enforced"))
        forks, written = self.forks[scratch], scratch / "written"
        written.mkdir()
        interpreter, *program = words
        asked = ["--tape", str(recorded), "--now", str(now), "--scratch", str(written)]
        if forks:
            asked += ["--forks", str(scratch / "forks.tape")]
        if self.headers:
            asked += ["--headers", str(laid_headers(scratch, self.headers))]
        if self.run.trace_id:
            asked += ["--origin", _run_id(self.run)]
        asked += [*self.options, "--", *program]
        isolation = {"network": self.no_network, "files": self.no_changes}
        done = None
        if self.warm is not None and not forks and not self.options:
            done = _execute_warm(self.warm, interpreter, asked, folder, environ, scratch, isolation)
        if done is None:
            wait_s = FORKS_PATIENCE_S if forks else 0.0
            start = [*isolated(scratch, said, **isolation, wait_s=wait_s), interpreter]
            start += ["-m", "playhead_instrumentation", "replay", *asked]
            done = _execute(start, folder, environ, scratch, forks=bool(forks))
        if keep is not None and now.exists():
            shutil.copyfile(now, keep)
        tape = read_tape_file(recorded).tape
        result = replace(_result(self.run, tape, now, done), warm=done.warm)
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
                    told[fork.name] = compare(whole[fork.tape.instance], found, self.run)
        return result, told

    def child(self, python: str, scratch: Path, child: ChildProcess) -> dict[str, Report | str]:
        """The reports on another process of the run and on its forks, by name, or why there is none."""
        if child.why_not:
            return {child.name: child.why_not}
        command = child.command.from_elsewhere(live=False) if self.foreign else child.command
        environ = child_environment(command, self.environ)
        environ.update(
            (name, STAND_IN if value == PLACEHOLDER else value)
            for name, value in child.environment.items()
            if not is_kept(name) and not self.foreign
        )
        own = scratch / child.tape.instance.hex()
        try:
            done, told = self.replayed(own, [python, *child.command.words()], environ, child.folder)
        except ReplayFailed as problem:
            return {child.name: problem.what}
        return {child.name: done.report, **told}


def require_whole(run: Run) -> None:
    """`TapeGap` when facts of the tape are missing, `TapeMissing` when their bytes are."""
    gaps = gaps_of(run.tape)
    if gaps and gaps[0].reason == AGED_OUT:
        raise TapeGap(
            f"{run.name} cannot be replayed: {gaps[0]}",
            cause="what a service does for no request is kept for as long as process-history says",
            hint="replay one of its requests: playhead ls",
        )
    if gaps:
        raise TapeGap(
            f"{run.name} cannot be replayed: {gaps[0]}",
            cause="the agent died before they were delivered, or they were lost",
            hint="look for undelivered facts: playhead spool push",
        )
    for exchange in run.exchanges:
        if not exchange.has_content:
            raise TapeMissing(
                f"{run.name} cannot be replayed: it was recorded without content",
                cause=f"{exchange.name} has no bytes",
                hint="record it with its content: playhead record --content full SCRIPT",
            )


def require_contained(run: Run) -> None:
    """`UsageError` where a replay would change files for real."""
    left_out = [
        name for name in ("files", "sqlite") if name not in had(next(run.tape.facts()).attributes)
    ]
    if left_out and "files" not in enforceable():
        raise UsageError(
            f"a replay of {run.name} could change files: nothing here keeps it from them",
            cause=(
                f"it was recorded without {' and '.join(left_out)}, "
                "and this system allows no namespaces of mounts"
            ),
            hint="where that does no harm: --repeat-effects; level causal records files",
        )


def require_headers(run: Run, headers: Mapping[str, str]) -> None:
    """`UsageError` where ``headers`` are given and there is no request that has any."""
    if headers and not any(not one.is_marked for one in run.requests):
        raise UsageError(
            f"{run.name} is no request that came over HTTP: it has no headers",
            hint=f"playhead show {run.name}",
        )


def laid_headers(scratch: Path, headers: Mapping[str, str]) -> Path:
    """A file with ``headers``, for the process that asks with them."""
    path = scratch / "headers.json"
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(write_headers(headers))
    return path


def require_application(run: Run, came: Sequence[InboundRequest]) -> None:
    """`TapeMissing` where nothing says what a request came to."""
    for one in came:
        if not one.application and one.is_marked:
            raise TapeMissing(
                f"{run.name} cannot be replayed: {one.key} is no function that can be called again",
                cause="it is a block, or a function that is made inside another one",
                hint="mark a function of a module: @playhead.run",
            )
        if not one.application:
            raise TapeMissing(
                f"{run.name} cannot be replayed: nothing leads to the application that served {one.key}",
                cause="no module held it when it was recorded",
                hint="make it an attribute of a module: app = create_app()",
            )


def _program(command: Command, came: Sequence[InboundRequest]) -> list[str]:
    """The command line of the program; of a worker that was spawned, which has none, its application."""
    if came and command.script in ("", "-", "-c"):
        return ["-m", came[0].application.partition(":")[0]]
    return command.words()


def _is_of_process(run: Run) -> bool:
    """Whether the run is what its first process did, and not a part of it."""
    start = next(run.tape.facts()).trace_id
    return not any(start) or not run.trace_id or start.hex() == run.trace_id


def interpreter_for(command: Command, python: str = "") -> str:
    """The Python that runs the program: ``python``, else the recorded one, else this one."""
    if python:
        found = shutil.which(python)
        if found is None:
            raise UsageError(f"no interpreter {python}", hint="playhead replay RUN --python PATH")
        return found
    recorded = shutil.which(command.interpreter) if command.interpreter else None
    return recorded or sys.executable


def child_environment(command: Command, environ: Mapping[str, str]) -> dict[str, str]:
    """What the replayed program finds in its environment.

    What it had when it was recorded, as far as the tape tells, over ``environ``; a credential is
    replaced by a stand-in, so that clients can be made and nothing real is at hand.
    """
    recorded = command.environment
    child = {
        name: value
        for name, value in environ.items()
        if not name.startswith(DROPPED) and not (recorded and is_kept(name))
    }
    child.update(recorded)
    wanted = [name for name, value in recorded.items() if not value] if recorded else CREDENTIALS
    child.update(dict.fromkeys(wanted, STAND_IN))
    child["PYTHONHASHSEED"] = command.hash_seed if command.hash_seed.isdigit() else "0"
    path = [one for one in child.pop("PYTHONPATH", "").split(os.pathsep) if one]
    path = [one for one in path if not one.endswith(STARTERS)]
    if path:
        child["PYTHONPATH"] = os.pathsep.join(path)
    return child


def _folder(command: Command, cwd: str) -> Path:
    folder = Path(cwd or command.cwd or ".")
    if not os.path.isdir(folder):
        raise UsageError(
            f"the folder of the run is not there: {folder}",
            hint="say where the program lies: playhead replay RUN --cwd FOLDER",
        )
    return folder


def _run_id(run: Run) -> str:
    root = run.roots[0].span_id if run.roots else "0" * 16
    return f"{run.trace_id}-{root}"


@dataclass(frozen=True, slots=True)
class _Done:
    returncode: int
    stdout: bytes
    stderr: bytes
    warm: bool = False


def _execute(
    words: list[str], cwd: Path, environ: dict[str, str], scratch: Path, *, forks: bool
) -> _Done:
    """Run the child to its end. Its streams go to files, so that none of them can make it wait.

    ``forks``: and to the end of its forks, which all hold a pipe until then.
    """
    over, held = os.pipe() if forks else (-1, -1)
    with (
        open(scratch / "stdout", "w+b") as stdout,
        open(scratch / "stderr", "w+b") as stderr,
    ):
        try:
            child = subprocess.Popen(
                words,
                cwd=cwd,
                env={**environ, HELD: str(held)} if forks else environ,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                pass_fds=(held,) if forks else (),
            )
        except OSError as problem:
            raise ReplayFailed(
                f"{words[0]} cannot be started",
                cause=str(problem),
                hint="playhead replay RUN --python PATH",
            ) from problem
        finally:
            if forks:
                os.close(held)
        try:
            returncode = child.wait()
            if forks:
                _until_over(over, scratch)
        except BaseException:
            child.kill()
            child.wait()
            raise
        stdout.seek(0)
        stderr.seek(0)
        return _Done(returncode, stdout.read(), stderr.read())


def _execute_warm(
    warm: Warm,
    interpreter: str,
    words: list[str],
    cwd: Path,
    environ: dict[str, str],
    scratch: Path,
    isolation: Mapping[str, bool],
) -> _Done | None:
    """The same in a fork of a process that waits; None where there is none."""
    returncode = warm.execute(
        interpreter, words, folder=cwd, environ=environ, scratch=scratch, **isolation
    )
    if returncode is None:
        for left in ("over", "written"):
            shutil.rmtree(scratch / left, ignore_errors=True)
        (scratch / "written").mkdir()
        return None
    said = [(scratch / name).read_bytes() for name in ("stdout", "stderr")]
    return _Done(returncode, *said, warm=True)


def _until_over(over: int, scratch: Path) -> None:
    """Wait for forks that outlive the process they come from; what does not end is ended."""
    try:
        if select.select([over], [], [], FORKS_PATIENCE_S)[0]:
            return
        for path in scratch.glob("now.*.tape"):
            first = next(read_unfinished(path).tape.facts(), None)
            pid = 0 if first is None else int(first.attributes.get(a.PLAYHEAD_PROCESS_PID, 0))
            with contextlib.suppress(OSError):
                if pid:
                    os.kill(pid, signal.SIGKILL)
    finally:
        os.close(over)


def _result(run: Run, tape: IndexedTape, now: Path, done: _Done) -> Replay:
    said = done.stderr[-SAID_BYTES:].decode(errors="replace").strip()
    if not now.exists():
        raise ReplayFailed(
            f"{run.name} could not be started again (exit {done.returncode})",
            cause=said.splitlines()[-1] if said else "it left no tape and said nothing",
            hint="is playhead-instrumentation installed there? playhead replay RUN --python PATH",
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
    return Replay(report, played.tape, done.returncode, done.stdout, done.stderr)
