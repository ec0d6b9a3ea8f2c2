"""The checks of ``playhead doctor``, one function per subject."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from playhead_cli.diagnosis.source_coverage import imports_of, sources_of, uncovered
from playhead_cli.running.agent import agent_python
from playhead_cli.session import Session
from playhead_cli.views.words import count, size
from playhead_exporter.probe import ask
from playhead_exporter.shipping.endpoint_answers import Accepted, TryLater, Unwelcome
from playhead_receiver.host.writer_lock import running
from playhead_receiver.maintenance.indexer import FAR_BEHIND
from playhead_receiver.store.keeping.retention import policy_of
from playhead_receiver.store.keeping.service_history import history_of
from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.boundaries import BOUNDARIES, Boundary, has, selected
from playhead_semconv.errors import PlayheadError
from playhead_semconv.process.module_coverage import WRAP
from playhead_semconv.tape.folds import level_of

if TYPE_CHECKING:
    from playhead_replay import Run

Mark = Literal["good", "warning", "bad", "off"]

PROBE_TIMEOUT_S = 20

PROBED = (
    "playhead-instrumentation",
    "playhead-exporter",
    "opentelemetry-sdk",
    "openai",
    "anthropic",
    "httpx",
    "httpx2",
)
"""Distributions that are looked up in the agent's interpreter."""

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


@dataclass(frozen=True, slots=True)
class ReportLine:
    """One line of the report."""

    mark: Mark
    text: str
    hint: str = ""

    def to_json(self) -> dict[str, str | None]:
        """As an object of plain values."""
        return {"mark": self.mark, "text": self.text, "hint": self.hint or None}


def check_interpreter(python: str) -> Iterator[ReportLine]:
    """The agent's interpreter and its installed distributions."""
    path = agent_python(python, os.environ)
    try:
        done = subprocess.run(
            [path, "-c", _PROBE, *PROBED], capture_output=True, timeout=PROBE_TIMEOUT_S, check=True
        )
        at, found = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as problem:
        yield ReportLine("bad", f"{path} does not run: {problem}", "playhead doctor --python PATH")
        return
    yield ReportLine("good", f"playhead {version('playhead')}, agents run on Python {at} ({path})")
    for name in PROBED[:3]:
        if name not in found:
            hint = f"{path} -m pip install playhead-agent"
            yield ReportLine("bad", f"{name} is not installed there", hint)
    clients = [f"{name} {found[name]}" for name in PROBED[3:] if name in found]
    yield ReportLine("good", "recorded there: " + (", ".join(clients) or "nothing that is installed"))


def check_boundaries(session: Session) -> Iterator[ReportLine]:
    """What is recorded at the current level and what is not, by row of the boundaries table."""
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
            why = "left out by the setting boundaries" if has(level, row) else _had_with(row)
            yield ReportLine("off", f"{row.name:<{width}}  off: {why}")


def _had_with(row: Boundary) -> str:
    """The setting that makes a recording include this boundary."""
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
    """What a recorded run reports about itself."""
    start: dict[str, Any] = {}
    redacted = 0
    for tape in run.tapes:
        for fact in tape.facts():
            if fact.name == e.PLAYHEAD_PROCESS_START and not start:
                start = fact.attributes
            redacted += int(fact.attributes.get(a.PLAYHEAD_REDACTED_COUNT, 0))
    if not start:
        yield ReportLine(
            "bad", f"{run.name} has no tape and cannot be replayed", "playhead record SCRIPT"
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
    for kind, target in _unseen_effects(run):
        yield ReportLine(
            "warning",
            f"{kind} {target}: no boundary sees what came from there",
            WRAP,
        )
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


def _unseen_effects(run: Run) -> list[tuple[str, str]]:
    """Sockets that the program opened itself, without duplicates."""
    found: dict[tuple[str, str], None] = {}
    for effect in run.outputs.effects:
        if effect.kind == "socket":
            found[effect.kind, effect.target] = None
    return list(found)


def check_receiver(session: Session) -> Iterator[ReportLine]:
    """Where records are sent, and whether a receiver accepts them."""
    found = running(session.data_dir)
    if found is not None:
        where = " and ".join(one for one in (found.http, found.grpc) if one) or "nowhere yet"
        yield ReportLine("good", f"receiver: process {found.pid} listens at {where}")
    else:
        yield ReportLine("good", "no receiver runs: playhead record embeds one")
    origin = session.resolved.origins["endpoint"]
    settings = session.settings
    try:
        answer = ask(settings)
    except PlayheadError as problem:
        yield ReportLine("bad", problem.what, problem.hint)
        return
    except OSError as problem:
        yield ReportLine("bad", f"{settings.endpoint}: {problem}")
        return
    if isinstance(answer, Accepted):
        yield ReportLine("good", f"{settings.endpoint} takes records ({origin})")
    elif origin != "default" or not isinstance(answer, TryLater):
        hint = answer.hint if isinstance(answer, Unwelcome) else ""
        where = "" if answer.reason.startswith(settings.endpoint) else f"{settings.endpoint}: "
        meanwhile = "agents keep their records in the spool meanwhile"
        yield ReportLine("bad", f"{where}{answer.reason}; {meanwhile}", hint)


def check_store(session: Session) -> Iterator[ReportLine]:
    """Whether stored data can be read and searched."""
    if session.nothing_kept:
        return
    from playhead_receiver.store import open_store

    try:
        store = open_store(session.store, read_only=True)
        try:
            held, lag = store.size_bytes(), store.lag()
        finally:
            store.close()
    except PlayheadError as problem:
        yield ReportLine("bad", f"{problem.what}: {problem.cause}", problem.hint)
        return
    behind = lag.bundles + lag.fact_runs
    yield ReportLine("good", f"store: {session.store_name}, {size(held)}")
    if behind:
        yield ReportLine(
            "warning" if behind > FAR_BEHIND else "good",
            f"search: {count(behind, 'group')} of spans and facts cannot be found yet",
            "playhead search makes up for it, a receiver that runs does so by itself",
        )


def check_spool(session: Session) -> Iterator[ReportLine]:
    """Undelivered data in the spool."""
    from playhead_exporter.push import pending

    found = pending(session.settings)
    for alive, kind in ((True, "living"), (False, "dead")):
        left = [one for one in found if one.alive is alive]
        if not left:
            continue
        facts, spans = sum(one.facts for one in left), sum(one.spans for one in left)
        waiting = " and ".join(
            count(number, what) for number, what in ((facts, "fact"), (spans, "span")) if number
        )
        held = size(sum(one.bytes for one in left))
        owners = f"a {kind} process" if len(left) == 1 else f"{len(left)} {kind} processes"
        yield ReportLine(
            "warning",
            f"spool: {waiting} ({held}) of {owners} undelivered",
            "they deliver by themselves what the endpoint takes" if alive else "playhead spool push",
        )
    if not found:
        yield ReportLine("good", "spool: nothing undelivered")


def check_replay() -> Iterator[ReportLine]:
    """How well a replay is isolated from the world."""
    from playhead_replay.launch.isolation import enforceable

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
    """Whether the settings can be read."""
    try:
        chosen = sum(origin != "default" for origin in session.resolved.origins.values())
        if chosen:
            yield ReportLine("good", f"{count(chosen, 'setting')} changed (playhead doctor --config)")
        policy_of(session.settings.retention)
        history_of(session.settings.process_history)
    except PlayheadError as problem:
        yield ReportLine("bad", problem.what, problem.hint)
