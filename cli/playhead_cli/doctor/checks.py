"""Checks of ``playhead doctor``: interpreter, settings, boundaries, scripts, runs, replays."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead_cli.doctor import ReportLine
from playhead_cli.doctor.source_coverage import imports_of, sources_of, uncovered
from playhead_cli.output.words import count
from playhead_cli.running.agent import agent_python
from playhead_cli.session.session import Session
from playhead_core.boundaries import BOUNDARIES, Boundary, has, selected
from playhead_core.errors import PlayheadError
from playhead_core.process.module_coverage import WRAP
from playhead_core.tape.folds import level_of
from playhead_receiver.storage.retention import history_of, policy_of
from playhead_replay.run.outputs import unrecorded_traffic
from playhead_replay.runner.isolation import enforceable
from playhead_semconv import attributes as a
from playhead_semconv import events as e

if TYPE_CHECKING:
    from playhead_replay import Run

PROBE_TIMEOUT_S = 20

OURS = ("playhead-instrumentation", "playhead-exporter", "opentelemetry-sdk")
"""Distributions that an agent's interpreter needs."""

_PROBE = (
    "import json, sys\n"
    "from importlib.metadata import version, PackageNotFoundError\n"
    "found = {}\n"
    "for name in sys.argv[1:]:\n"
    "    try:\n"
    "        found[name] = version(name)\n"
    "    except PackageNotFoundError:\n"
    "        pass\n"
    "print(json.dumps([sys.version.split()[0], found]))\n"
)


def check_interpreter(python: str) -> Iterator[ReportLine]:
    """Yield the agent's interpreter and what it needs of playhead."""
    path = agent_python(python, os.environ)
    try:
        done = subprocess.run(
            [path, "-c", _PROBE, *OURS],
            capture_output=True,
            timeout=PROBE_TIMEOUT_S,
            check=True,
        )
        at, found = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as problem:
        yield ReportLine("bad", f"{path} does not run: {problem}", "playhead doctor --python PATH")
        return
    yield ReportLine("good", f"playhead {version('playhead')}, agents run on Python {at} ({path})")
    for name in OURS:
        if name not in found:
            yield ReportLine(
                "bad", f"{name} is not installed there", f"{path} -m pip install playhead-agent"
            )
    there, here = found.get(OURS[0]), version(OURS[0])
    if there not in (None, here):
        yield ReportLine(
            "warning",
            f"{OURS[0]} is {there} there and {here} here: what one writes the other may not read",
            f"{path} -m pip install playhead-agent=={here}",
        )


def check_boundaries(session: Session) -> Iterator[ReportLine]:
    """Yield what the current level records and what not, by row of the boundaries table."""
    level = session.settings.recording_level
    on = selected(level, session.settings.boundaries)
    origin = session.resolved.origins["level"]
    if origin == "default":
        origin += "; playhead record has strict"
    yield ReportLine("good", f"level {level} ({origin}): {len(on)} of {len(BOUNDARIES)} boundaries")
    width = max(len(row.name) for row in BOUNDARIES)
    for row in BOUNDARIES:
        if row in on:
            yield ReportLine("good", f"{row.name:<{width}}  {row.facts}")
        else:
            why = "left out by the setting boundaries" if has(level, row) else had_with(row)
            yield ReportLine("off", f"{row.name:<{width}}  off: {why}")


def had_with(row: Boundary) -> str:
    """Return the setting that makes a recording include this boundary."""
    ways = [f"level {row.level}"] if row.level is not None else []
    return " or ".join([*ways, f"boundaries +{row.name}"] if row.choice == "choice" else ways)


def check_script(script: Path) -> Iterator[ReportLine]:
    """Recorded and unrecorded inputs of a program and its own modules, with file, line and advice."""
    try:
        imports = [one for path in sources_of(script) for one in imports_of(path)]
    except (SyntaxError, ValueError, OSError) as problem:
        yield ReportLine("bad", f"{script} cannot be read: {problem}")
        return
    seen = dict.fromkeys(f"{one.module} ({one.seen})" for one in imports if one.seen)
    if seen:
        yield ReportLine("good", f"{script.name} imports {', '.join(seen)}")
    found = list(uncovered(script))
    for one in found:
        text = f"{one.what} {one.file}:{one.line}: the tape does not hold {one.missing}"
        yield ReportLine("warning", text, one.hint)
    if not found:
        yield ReportLine("good", f"{script.name}: nothing is known that the tape would not hold")


def check_run(run: Run) -> Iterator[ReportLine]:
    """Yield the findings of a recorded run about itself."""
    start: dict[str, Any] = {}
    redacted = 0
    for tape in run.tapes:
        for fact in tape.facts():
            if fact.name == e.PLAYHEAD_PROCESS_START and not start:
                start = fact.attributes
            redacted += int(fact.attributes.get(a.PLAYHEAD_REDACTED_COUNT, 0))
    if not start:
        yield ReportLine(
            "bad",
            f"{run.name} has no tape: at best its spans can answer a replay",
            f"playhead replay {run.name} --program 'python agent.py'; or playhead record SCRIPT",
        )
        return
    level = level_of(run.tape.facts())
    yield ReportLine("good", f"{run.name}: {run.command} ({level} order, {run.status})")
    patched = [str(one) for one in start.get(a.PLAYHEAD_RUN_PATCHED, [])]
    for root in run.roots:
        patched = patched or [str(one) for one in root.attributes.get(a.PLAYHEAD_RUN_PATCHED, [])]
    if patched:
        yield ReportLine("good", f"patched: {', '.join(patched)}")
    for attributes in (start, *(root.attributes for root in run.roots)):
        for one in attributes.get(a.PLAYHEAD_RUN_UNPATCHED, []):
            yield ReportLine("warning", f"not patched: {one}")
    if start.get(a.PLAYHEAD_RUN_HASH_SEED) == "random":
        yield ReportLine(
            "warning",
            "PYTHONHASHSEED was random: the order of sets is not reproducible",
            "playhead record fixes it",
        )
    if level != start.get(a.PLAYHEAD_RUN_LEVEL, level):
        yield ReportLine(
            "warning",
            f"recorded at level {start[a.PLAYHEAD_RUN_LEVEL]}, it turned {level}: "
            "an event loop did not say when it is idle",
            "run it on asyncio's own loop: the order of tasks is exact there",
        )
    for target in dict.fromkeys(chain.from_iterable(unrecorded_traffic(run.tapes).values())):
        yield ReportLine("warning", f"socket {target}: no boundary sees what came from there", WRAP)
    if run.outputs.exit is None and run.status != "running":
        yield ReportLine("warning", "it did not end in order: a replay goes as far as the tape does")
    if redacted:
        yield ReportLine("good", f"{count(redacted, 'value')} redacted")
    if run.aged_out:
        yield ReportLine("good", f"{run.aged_out} facts that belong to no request have aged out")
    for gap in run.lost:
        yield ReportLine("bad", f"{gap}: it cannot be replayed", "playhead spool push")
    script = run.command.script_path(Path(run.command.cwd or "."))
    if script is not None and script.is_file():
        yield from check_script(script)


def check_replay() -> Iterator[ReportLine]:
    """How well a replay is isolated from the world."""
    by_kernel = enforceable()
    if "network" in by_kernel:
        yield ReportLine("good", "replays run without a network, enforced by the kernel")
    else:
        yield ReportLine(
            "warning", "user namespaces are not allowed here: replays refuse the network in-process only"
        )
    if "files" in by_kernel:
        yield ReportLine("good", "replays change no files, enforced by the kernel")
    elif by_kernel:
        yield ReportLine(
            "warning", "replays refuse changes to files in-process only: no read-only mounts here"
        )


def check_settings(session: Session) -> Iterator[ReportLine]:
    """Yield whether the settings can be read, and whether anything is recorded with them."""
    try:
        settings, origins = session.settings, session.resolved.origins
        chosen = sum(origin != "default" for origin in origins.values())
        if chosen:
            yield ReportLine("good", f"{count(chosen, 'setting')} changed (playhead doctor --config)")
        if settings.disabled:
            yield ReportLine("bad", f"nothing is recorded: disabled, {origins['disabled']}", "unset it")
        if settings.content == "metadata":
            yield ReportLine(
                "warning",
                f"content is metadata, {origins['content']}: what is said is not recorded, and no run"
                " can be replayed",
            )
        policy_of(settings.retention)
        history_of(settings.process_history)
    except PlayheadError as problem:
        yield ReportLine("bad", problem.what, problem.hint)
