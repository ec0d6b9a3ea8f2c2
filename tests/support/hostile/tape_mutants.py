"""Reads damaged tapes, goldens and spools in every way that executes nothing, in a watched process.

``python -m support.hostile.tape_mutants SEED COUNT FOLDER``: each one is read, shown, imported as far as
its requests, forked as far as its folder, and delivered, and its values are made. Exits 1 with the
reason if anything outside FOLDER/scratch is written, anything is executed, or an exception is not an
error of playhead.
"""

from __future__ import annotations

import base64
import io
import json
import os
import random
import shutil
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

import numpy  # noqa: F401, values of it are made
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from rich.console import Console
from support.hostile.mutants_used import Reading, use_more
from support.hostile.watched import Watched
from support.starting.measured import peak_bytes
from support.tapes.handmade import HandMade

from playhead_cli.output import plain, tree
from playhead_cli.output.step import overview, wire
from playhead_core.errors import PlayheadError
from playhead_core.facts import Content, ErrorRecord, ExchangeId
from playhead_core.otlp import attributes_of, set_attributes
from playhead_core.tape.frames import MAGIC, WHOLE, Footer, Header, SpanRecord, encode
from playhead_core.tape.frames_text import to_text
from playhead_exporter.spool.folders import SpoolFolders
from playhead_exporter.spool.segments import LeftSegments, Position, read_batch
from playhead_genai.prices import price_of
from playhead_genai.providers import DIALECTS
from playhead_instrumentation.libraries.common import values
from playhead_instrumentation.recorder.exceptions import again
from playhead_receiver.archive import run_files
from playhead_replay import Run
from playhead_replay.diff import diff
from playhead_replay.forks.workspace import copied
from playhead_replay.goldens.golden_file import read_golden
from playhead_replay.goldens.golden_paths import place_of
from playhead_replay.report.compare import compare
from playhead_replay.tape_files.tape_file import read_tape_file, read_unfinished
from playhead_semconv import attributes as a
from playhead_semconv import events as e

PEAK_BYTES = 1 << 30
EXPECTED = (PlayheadError, values.Unkept)

HOSTILE: list[Any] = [
    {"$type": "enum", "class": ["os", "system"], "value": "touch canary"},
    {"$type": "object", "class": ["subprocess", "Popen"], "value": [["true"], None]},
    {"$type": "object", "class": ["builtins", "map"], "value": [["x", []], None]},
    {"$type": "object", "class": ["operator", "methodcaller"], "value": [["system", "x"], None]},
    {"$type": "exception", "class": ["antigravity", "X"], "value": [[], None, None, False]},
    {"$type": "class", "class": ["subprocess", "Popen"], "value": None},
    {"$type": "numpy.array", "value": base64.b64encode(b"\x93NUMPY\x01\x00").decode()},
    {"$type": "fractions.Fraction", "value": [1, 2]},
    {"$type": "zoneinfo.ZoneInfo", "value": "../../../etc/passwd"},
    {"$type": "re.Pattern", "value": ["(a", 0]},
    {"$type": "tuple", "value": [1, {"$type": "set", "value": [1]}]},
]
PATHS = "./a|.//etc/x|./../canary/kept|./a/../../canary/kept|~/x|/etc/x|./link/kept|./\0".split("|")
WAYS = ("write", "append", "remove", "rename", "symlink")
NAMES = [value for name, value in vars(a).items() if name.isupper() and isinstance(value, str)]
STRANGE: list[Any] = [
    None,
    True,
    -1,
    1 << 63,
    1 << 80,
    1.5,
    "",
    "x" * 300,
    "\ud83d",
    "http://[",
    "\x1b[2J",
    "{{7*7}}evil{% raw %}<script>evil",
    "{0.__class__.__init__.__globals__}%(x)s%n",
    "; touch canary; $(touch canary)",
    ["LD_PRELOAD=/evil.so", "PYTHONPATH=/evil", "PYTHONSTARTUP=/evil", "BASH_ENV=/evil"],
    "os:system",
    "agent:__import__('os').system('evil')",
    "../../evil",
    [],
    {},
    [[]],
    b"\xff",
]


BESIDE: dict[str, dict[str, Any]] = {
    e.PLAYHEAD_PROCESS_HEARTBEAT: {a.PLAYHEAD_PROCESS_LAST_SEQ: 3},
    e.PLAYHEAD_GAP: {a.PLAYHEAD_GAP_FIRST: 900, a.PLAYHEAD_GAP_LAST: 901},
    e.PLAYHEAD_CHECK: {a.PLAYHEAD_CHECK_NAME: "sum", a.PLAYHEAD_CHECK_SAID: "no"},
    e.PLAYHEAD_STATE: {a.PLAYHEAD_STATE_NAME: "cart"},
    e.PLAYHEAD_READ: {a.PLAYHEAD_READ_KIND: "clock/time"},
    e.PLAYHEAD_STANDSTILL: {a.PLAYHEAD_STANDSTILL_THREADS: ["main"]},
    e.PLAYHEAD_TURN_LOST: {a.PLAYHEAD_TURN_THREAD: "main", a.PLAYHEAD_TURN_HOW: "lost"},
}
"""Facts of other kinds, and their attributes."""


APPLICATIONS = (
    "agent:app",
    "os:system",
    "antigravity:fly",
    "evil:app",
    "agent:__import__('os').system('touch canary')",
    "__main__:os.abort()",
    "agent:app[0]",
)


def served(application: str) -> HandMade:
    """A request that came to a service."""
    made = HandMade().start("-c", "/nowhere")
    details: dict[str, Any] = {
        a.PLAYHEAD_EXCHANGE_DIRECTION: "in",
        a.PLAYHEAD_INBOUND_APPLICATION: application,
        a.PLAYHEAD_INBOUND_FOLDER: "../../evil",
        a.PLAYHEAD_INBOUND_INTERFACE: "run",
    }
    made.exchange("GET /", kind="inbound", **details)
    made.chat()
    return made.exit(0)


def sound() -> HandMade:
    made = HandMade().start("agent.py", "/nowhere", **{a.PLAYHEAD_RUN_ENVIRONMENT: ["TZ=UTC"]})
    made.chat(chunks=(b"data: {}\n\n", b"x"))
    made.chat(status=0, how="error", error=ErrorRecord("httpx", "ConnectError", "no", []))
    made.tool("look", "{}", error="ValueError: x")
    for number, path in enumerate(PATHS[:3]):
        kind = ("file.write", "file.append", "file.remove")[number]
        attributes = {a.PLAYHEAD_EFFECT_KIND: kind, a.PLAYHEAD_EFFECT_TARGET: path}
        made.fact(e.PLAYHEAD_EFFECT, attributes=attributes, body=Content.of(b"bad"))
    made.say("hello\n")
    for name, attributes in BESIDE.items():
        state = ExchangeId(1, "state", 0) if name == e.PLAYHEAD_STATE else None
        made.fact(name, exchange=state, attributes=attributes, body=Content.of(b"{}"))
    return made.exit(0)


class Mutants:
    """Generator of mutants of a valid run."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._bases = [sound()] * len(APPLICATIONS) + [served(one) for one in APPLICATIONS]
        self._choose()

    def _choose(self) -> None:
        made = self.random.choice(self._bases)
        self.facts = made.facts
        self.spans = [span.otlp for span in made.spans]

    def _attribute(self, attributes: dict[str, Any]) -> None:
        """Set an attribute from the list, or an unknown one, to a value that it never has."""
        names = list(attributes) if attributes and self.random.random() < 0.5 else NAMES
        attributes[self.random.choice(names)] = self.random.choice(STRANGE)

    def _spans(self) -> list[bytes]:
        spans = list(self.spans)
        for _ in range(self.random.choice([0, 0, 1, 2])):
            at = self.random.randrange(len(spans))
            found = ResourceSpans.FromString(spans[at])
            span = found.scope_spans[0].spans[0]
            attributes = attributes_of(span.attributes)
            self._attribute(attributes)
            del span.attributes[:]
            try:
                set_attributes(span.attributes, attributes)
            except ValueError:  # not a valid protobuf text
                continue
            spans[at] = found.SerializeToString()
        return [self._bytes(one) if self.random.random() < 0.1 else one for one in spans]

    def _facts(self) -> list[Any]:
        import msgspec

        pick, facts = self.random, list(self.facts)
        for _ in range(pick.randint(0, 4)):
            at = pick.randrange(len(facts))
            fact, attributes = facts[at], dict(facts[at].attributes)
            match pick.randrange(8):
                case 0:
                    self._attribute(attributes)
                case 1 if attributes:
                    del attributes[pick.choice(list(attributes))]
                case 2:
                    attributes[a.PLAYHEAD_EFFECT_TARGET] = pick.choice(PATHS)
                    attributes[a.PLAYHEAD_EFFECT_KIND] = pick.choice(
                        ["file.write", "file.rename", "file.remove"]
                    )
                    fact = msgspec.structs.replace(fact, name=e.PLAYHEAD_EFFECT)
                case 3:
                    fact = msgspec.structs.replace(fact, name=pick.choice(self.facts).name)
                case 4:
                    fact = msgspec.structs.replace(
                        fact, seq=pick.choice([-5, 0, at + 1, 1 << 62, 1 << 70]) % (1 << 64)
                    )
                case 5:
                    said = json.dumps({"return": pick.choice(HOSTILE)}).encode()
                    fact = msgspec.structs.replace(fact, body=Content.of(said))
                case 6:
                    digest = pick.choice([f.body.digest for f in self.facts if f.body])
                    base = Content(
                        digest, pick.choice([-1, 3, 1 << 50]), b"x", digest, pick.choice([0, 1, 1 << 40])
                    )
                    fact = msgspec.structs.replace(fact, body=base)
                case _:
                    facts.insert(at, pick.choice(self.facts))
                    continue
            facts[at] = msgspec.structs.replace(fact, attributes=attributes)
        return facts

    def _bytes(self, data: bytes) -> bytes:
        found = bytearray(data)
        for _ in range(self.random.choice([0, 0, 1, 3])):
            at, size = self.random.randrange(len(found) + 1), self.random.randint(1, 40)
            match self.random.randrange(4):
                case 0 if at < len(found):
                    found[at] ^= 1 << self.random.randrange(8)
                case 1:
                    del found[at : at + size]
                case 2:
                    found[at:at] = self.random.randbytes(size)
                case _:
                    del found[at:]
        return bytes(found)

    def next(self, folder: Path) -> Path:
        """The file of the next mutant, in an empty folder."""
        self._choose()
        facts = self._facts()
        form = self.random.choice(["tape", "tape", "golden", "spool", "packed", "lines"])
        header = Header(self.facts[0].instance, 1)
        spans = self._spans()
        try:
            if form == "golden":
                text = to_text([header, *facts]).encode("utf-8", "replace")
                return _laid(folder / "x.tape", self._bytes(text))
            frames = [encode(one) for one in (header, *facts, *map(SpanRecord, spans))]
        except (TypeError, ValueError, OverflowError):
            return self.next(folder)
        if form == "spool":
            home = folder / header.instance.hex()
            home.mkdir()
            return _laid(home / "00000001.tape", self._bytes(MAGIC + b"".join(frames)))
        whole = self._bytes(WHOLE + b"".join([*frames, encode(Footer(len(facts), len(spans)))]))
        if form == "packed":
            import gzip

            return _laid(folder / "x.tape.gz", self._bytes(gzip.compress(whole, 1)))
        if form == "lines":
            text = "\n".join(
                json.dumps(one) for one in [{"resourceSpans": [self.random.choice(HOSTILE)]}]
            )
            return _laid(folder / "x.jsonl", self._bytes(text.encode()))
        return _laid(folder / "x.tape", whole)


def _laid(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def use(file: Path, scratch: Path) -> None:
    """Do everything that is done with files from others without the user's consent."""
    console = Console(file=io.StringIO(), width=200)
    if file.parent.name != "in":
        segments = LeftSegments(bytes.fromhex(file.parent.name), _places(file.parent.parent))
        at = Position(0, 0)
        while (window := read_batch(segments, at, 1 << 20)).end != at:
            at = window.end
        return
    attempt(lambda: [*run_files.incoming(file).requests()])
    attempt(lambda: [*run_files.incoming(file, partial=True).requests()])
    attempt(lambda: read_golden(file))
    for read in (read_tape_file, read_unfinished):
        found = attempt(lambda read=read: read(file))
        if found is None:
            continue
        run = attempt(lambda found=found: Run.of_tapes(found.tapes, found.spans, "x"))
        if run is None:
            continue
        attempt(lambda run=run: [console.print(line) for line in tree.tree_lines(run)])
        attempt(lambda run=run: json.dumps(plain.run_object(run)))
        attempt(lambda run=run: (run.failed_checks, run.states, run.requests))
        attempt(lambda run=run: diff(run, run).to_json())
        for tape in run.tapes[:1]:
            attempt(lambda run=run, tape=tape: compare(tape, tape, run))
        for step in run.steps[:5]:
            attempt(
                lambda run=run, step=step: json.dumps(plain.step_object(run, step, run.messages(step)))
            )
            attempt(
                lambda run=run, step=step: [
                    console.print(line)
                    for everything in (False, True)
                    for line in overview.step_lines(run, step, run.messages(step), everything)
                ]
            )
            attempt(
                lambda run=run, step=step: [console.print(line) for line in wire.wire_lines(run, step)]
            )
        for tape in run.tapes:
            attempt(
                lambda tape=tape: shutil.rmtree(copied(scratch / "agent", tape, tape, scratch / "data"))
            )
            for fact in tape.facts():
                if fact.body is not None and fact.body.inline:
                    attempt(
                        lambda body=fact.body: values.read(body.inline), ValueError, KeyError, TypeError
                    )
        for exchange in run.exchanges:
            end = exchange.exchange.end
            if end is not None and end.error is not None:
                attempt(lambda end=end: again(end.error, RuntimeError))
    for name in PATHS:
        attempt(lambda name=name: place_of(file, name), ValueError)


def _places(folder: Path) -> SpoolFolders:
    return SpoolFolders(folder, folder)


def attempt(action: Any, *others: type[Exception]) -> Any:
    try:
        return action()
    except (*EXPECTED, *others):
        return None


def main(seed: int, count: int, folder: Path) -> int:
    scratch, canary = folder / "scratch", folder / "canary"
    for one in (scratch / "in", scratch / "agent", canary):
        one.mkdir(parents=True, exist_ok=True)
    (canary / "kept").write_text("kept")
    (scratch / "agent" / "link").symlink_to(canary)
    (scratch / "agent" / "agent.py").write_text("")
    tempfile.tempdir = str(scratch)
    price_of({a.GEN_AI_REQUEST_MODEL: "gpt-4o", a.GEN_AI_USAGE_INPUT_TOKENS: 1}, 1)  # imports its tables
    for name in DIALECTS:  # each is imported when it is first needed: our own code, of our own list
        _ = DIALECTS[name]
    mutants, done = Mutants(seed), 0
    with Reading(scratch) as reading:
        watched = Watched(scratch)
        for number in range(-20, count):  # the first rounds import what is needed
            for one in (scratch / "in").iterdir():
                shutil.rmtree(one) if one.is_dir() else one.unlink()
            file = mutants.next(scratch / "in")
            watched.is_watching = number >= 0
            try:
                use(file, scratch)
                use_more(file, scratch, mutants.random, reading)
            except EXPECTED:
                pass
            except Exception:
                watched.is_watching = False  # the compiler builds the traceback
                watched.problems.append(traceback.format_exc(limit=-6))
            watched.is_watching = False
            done += number >= 0
            if watched.problems:
                print(f"seed {seed}, number {number}: {watched.problems[0]}")
                return 1
        read, reached = reading.count, dict(reading.reached)
    kept = [(one.name, one.read_text()) for one in canary.iterdir()]
    if kept != [("kept", "kept")]:
        print(f"the canary was touched: {kept}")
        return 1
    peak = peak_bytes(os.getpid())
    print(json.dumps({"count": done, "peak_bytes": peak, "pages_read": read, "reached": reached}))
    return int(peak > PEAK_BYTES)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])))
