"""Tapes made by hand to run code or to write outside; used in every way, in a watched process.

``python -m support.hostile.evil_tapes FOLDER`` prints how many there were; exits 1 with the reason if
one of them had anything executed, imported or written outside FOLDER/scratch, or printed a control
sequence.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import random
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from support.hostile.mutants_used import Reading, use_more
from support.hostile.tape_mutants import APPLICATIONS, HOSTILE, served, use
from support.hostile.watched import Watched
from support.tapes.handmade import HandMade

from playhead_cli.app import run as command_line
from playhead_core.facts import Content, ErrorRecord, digest_of
from playhead_core.tape.frames import WHOLE, Footer, Header, SpanRecord, encode
from playhead_core.workspace import FolderEntry, SnapshotChanges
from playhead_core.workspace import encode_changes as encode_snapshot
from playhead_instrumentation.libraries.files.changes import Change, encode_changes
from playhead_instrumentation.libraries.multiprocessing.recorded_pickles import refusal
from playhead_replay.tape_files.tape_file import write_tape_file
from playhead_semconv import attributes as a
from playhead_semconv import events as e

PATHS = ("../evil", "/tmp/evil", "a/../../evil", "link/evil", "link", "~/evil", "\0evil", "a\nb", "")
VARIABLES = (
    "LD_PRELOAD PYTHONPATH PYTHONSTARTUP PYTHONHOME PYTHONBREAKPOINT PYTHONWARNINGS BASH_ENV PATH"
    " PLAYHEAD_CHECKS OTEL_PYTHON_CONFIGURATOR GIT_SSH_COMMAND EDITOR"
).split()
SHOWN = (
    "\x1b]0;evil\x07\x1b[2J\x9b31m\u202eevil",
    "{{7*7}}evil{% raw %}<script>evil</script>",
    "{0.__class__.__init__.__globals__}%(x)s%n",
    "; touch evil; $(touch evil) `touch evil`",
    "--python=/evil",
    "x" * 1_000_000,
)

PICKLES = (
    b"cos\nsystem\n(S'true'\ntR.",  # GLOBAL, REDUCE
    b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R.",  # STACK_GLOBAL
    b"(S'true'\nios\nsystem\n.",  # INST
    b"(cos\nsystem\nS'true'\no.",  # OBJ
    b"csubprocess\nPopen\n(S'true'\nt\x81.",  # NEWOBJ
    b"\x80\x04\x8c\nsubprocess\x8c\x05Popen\x93\x8c\x04true\x85}\x92.",  # NEWOBJ_EX
    b"cevil\nEvil\n)\x81}S'x'\nS'y'\nsb.",  # BUILD
    b"\x80\x02\x82\x01.",  # EXT1
    b"\x80\x02\x83\x01\x00.",  # EXT2
    b"\x80\x02\x84\x01\x00\x00\x00.",  # EXT4
    b"Pevil\n.",  # PERSID
    b"\x80\x02S'evil'\nQ.",  # BINPERSID
    b"c__builtin__\neval\n(S'1'\ntR.",  # a name of Python 2
    b"cbuiltins\ngetattr\n(cos\nenviron\nS'clear'\ntR)R.",
    b"cfunctools\npartial\n(cos\nsystem\nS'true'\ntR)R.",
    b"coperator\nmethodcaller\n(S'system'\nS'true'\ntRcos\n__dict__\n\x85R.",
    b"cpickle\nloads\n(Ccos\nsystem\n.\ntR.",
)


def begun(**attributes: Any) -> HandMade:
    return HandMade().start("agent.py", "/nowhere", **attributes)


def evil() -> Iterator[tuple[str, HandMade]]:
    """The tapes, by what is evil in each."""
    yield "interpreter", begun(**{a.PLAYHEAD_RUN_INTERPRETER: "/tmp/evil"}).exit()
    yield "variables", begun(**{a.PLAYHEAD_RUN_ENVIRONMENT: [f"{n}=/evil" for n in VARIABLES]}).exit()
    yield (
        "options",
        begun(**{a.PLAYHEAD_RUN_ARGV: ["-c", "-X", "importtime", "--tape", "/tmp/evil"]}).exit(),
    )
    yield "module", begun(**{a.PLAYHEAD_RUN_SCRIPT: "-m evil"}).exit()
    yield "script", HandMade().start("../../evil.py", "/").exit()
    yield "folders", begun(**{a.PLAYHEAD_RUN_FOLDERS: ["cwd=/", "home=/", "prefix=../.."]}).exit()
    yield "modules", begun(**{a.PLAYHEAD_RUN_MODULES: ["/dev/zero=00", "/proc/self/mem=00"]}).exit()
    yield "types", begun(**{a.PLAYHEAD_RUN_ARGV: {"a": [b"\xff"]}, a.PLAYHEAD_RUN_CWD: [1]}).exit()
    for application in APPLICATIONS:
        yield f"application {application}", served(application)
    for module, name in (
        ("antigravity", "X"),
        ("subprocess", "Popen"),
        ("evil", "Evil"),
        ("os", "_exit"),
    ):
        made = begun()
        made.chat(status=0, how="error", error=ErrorRecord(module, name, "true", [["true"]]))
        yield f"exception {module}.{name}", made.exit()
    for value in HOSTILE:
        made = begun()
        body = Content.of(json.dumps({"args": [value], "kwargs": {}}).encode())
        made.fact(e.PLAYHEAD_CHECK, attributes={a.PLAYHEAD_CHECK_NAME: "x"}, body=body)
        yield f"value {value['$type']}", made.exit()
    yield "snapshot", snapshot()
    yield "files", files()
    yield "artifacts", artifacts()
    for text in SHOWN:
        made = begun(**{a.PLAYHEAD_RUN_AGENT: text})
        made.chat(name=text)
        made.tool(text, json.dumps({"x": text}), error=f"{text[:50]}: {text[:50]}")
        made.say(text)
        yield f"text {text[:10]!r}", made.exit()
    yield "content that extends itself", endless()


def snapshot() -> HandMade:
    made = begun()
    data = b"evil"
    made.fact(e.PLAYHEAD_WORKSPACE_FILE, body=Content.of(data))
    entries = [FolderEntry("link", "link", 0o777, target="/tmp"), FolderEntry("up", "link", target="..")]
    for path in PATHS:
        entries.append(FolderEntry(path, "file", 0o4777, len(data), 0, digest_of(data), "", len(data)))
        entries.append(FolderEntry(f"{path}/x", "folder", 0o777))
    changes = encode_snapshot(SnapshotChanges(entries, list(PATHS)))
    made.fact(e.PLAYHEAD_WORKSPACE, body=Content.of(changes))
    made.chat()
    return made.exit()


def files() -> HandMade:
    made = begun()
    for path in PATHS:
        for kind in (
            "file.symlink",
            "file.write",
            "file.append",
            "file.rename",
            "file.mkdir",
            "file.remove",
        ):
            at = {a.PLAYHEAD_EFFECT_KIND: kind, a.PLAYHEAD_EFFECT_TARGET: path}
            made.fact(e.PLAYHEAD_EFFECT, attributes=at, body=Content.of(b"/tmp/evil"))
    changes = [Change("./link", "link", 0o777, b"/tmp")]
    for path in PATHS:
        changes += [Change(path, "written", 0o777, b"evil"), Change(path, "folder", 0o777)]
        changes += [Change(path, "link", 0, b"/"), Change(f"{path}/x", "written", 0, b"evil")]
    made.fact(e.PLAYHEAD_EXCHANGE_END, attributes={}, body=Content.of(encode_changes(changes)))
    made.chat()
    return made.exit()


def artifacts() -> HandMade:
    made = begun()
    for name in PATHS + SHOWN[:5] + ("-o", ".bashrc", "CON", "a\\..\\evil"):
        at = {a.PLAYHEAD_ARTIFACT_NAME: name, a.PLAYHEAD_ARTIFACT_MEDIA_TYPE: "text/html"}
        made.fact(e.PLAYHEAD_ARTIFACT, attributes=at, body=Content.of(b"<script>evil</script>"))
    made.chat()
    return made.exit()


def endless() -> HandMade:
    made = begun()
    made.chat(request=b"own base")
    digest = digest_of(b"own base")
    base = Content(digest, 1 << 50, b"x", digest, 1 << 40)
    made.facts = [
        msgspec.structs.replace(one, body=base) if one.body and one.body.digest == digest else one
        for one in made.facts
    ]
    return made.exit()


def bombs(folder: Path) -> Iterator[tuple[str, Path]]:
    """Files that are no tapes: large, deep, or of a size that is a lie."""
    magic = (folder.parent / "some.tape").read_bytes()[:8]
    for name, data in (
        ("zeros.tape.gz", gzip.compress(bytes(200 << 20), 9)),
        ("size.tape", magic + struct.pack("<I", 0xFFFFFFF0) + b"\0" * 20),
        ("deep.tape", magic + b"\x91" * 100_000),
        ("deep.jsonl", b'{"resourceSpans":' + b"[" * 100_000),
        ("golden.tape", b'{"a":' * 50_000),
    ):
        (folder / name).write_bytes(data)
        yield name, folder / name


def commands(file: Path, scratch: Path) -> Iterator[list[str]]:
    yield ["import", str(file)]
    yield ["show"]
    yield ["diff", str(file), str(file), "--html", str(scratch / "diff.html")]
    yield ["export", "-o", str(scratch / "exported.tape")]
    yield ["workspace", "--to", tempfile.mkdtemp(dir=scratch)]
    yield ["replay", str(file), "--cwd", str(scratch / "agent")]  # refused: nobody can be asked


def tried(name: str, file: Path, scratch: Path, reading: Reading) -> None:
    for action in (
        lambda: use(file, scratch),
        lambda: use_more(file, scratch, random.Random(1), reading),
        lambda: reading.read(file),
    ):
        with contextlib.suppress(Exception):  # of a hostile file; what matters is what it does
            action()
    data = ["--data-dir", str(scratch / "own"), "--no-config"]
    for words in commands(file, scratch):
        out, err = io.TextIOWrapper(io.BytesIO()), io.TextIOWrapper(io.BytesIO())
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            with contextlib.suppress(Exception, SystemExit):
                command_line([*words, *data])
        for stream in (out, err):
            stream.flush()
            printed: Any = stream.buffer
            assert b"\x1b" not in printed.getvalue(), (name, words)


def main(folder: Path) -> int:
    scratch = folder / "scratch"
    for one in (scratch / "in", scratch / "agent", scratch / "evil"):
        one.mkdir(parents=True)
    (scratch / "agent" / "agent.py").write_text("")
    (scratch / "evil" / "evil.py").write_text("raise SystemExit('evil was imported')")
    sys.path.append(str(scratch / "evil"))
    os.environ["HOME"] = str(scratch)
    tempfile.tempdir = str(scratch)
    os.chdir(scratch)
    write_tape_file(scratch / "some.tape", begun().exit().tape())
    count = 0
    with Reading(scratch) as reading:
        watched = Watched(scratch)
        tried("warm", scratch / "some.tape", scratch, reading)  # imports what is needed

        def try_one(name: str, action: Callable[[], object]) -> None:
            nonlocal count
            watched.is_watching, count = True, count + 1
            action()
            watched.is_watching = False
            assert not watched.problems, (name, watched.problems[0])

        for name, made in evil():
            file = scratch / "in" / "x.tape"
            frames = [encode(one) for one in (Header(made.facts[0].instance, 1), *made.facts)]
            frames += [encode(SpanRecord(span.otlp)) for span in made.spans]
            file.write_bytes(
                WHOLE + b"".join([*frames, encode(Footer(len(made.facts), len(made.spans)))])
            )
            try_one(name, lambda name=name, file=file: tried(name, file, scratch, reading))
        for name, file in bombs(scratch / "in"):
            try_one(name, lambda name=name, file=file: tried(name, file, scratch, reading))
        for data in PICKLES:
            try_one(repr(data), lambda data=data: refused(data))
    assert "evil" not in sys.modules
    assert [one.name for one in folder.iterdir()] == ["scratch"]
    assert (
        not Path("/tmp/evil").exists() or Path("/tmp/evil").stat().st_mtime < os.stat(scratch).st_ctime
    )
    print(json.dumps({"count": count, "pages_read": reading.count}))
    return 0


def refused(data: bytes) -> None:
    if not refusal(data):
        import pickle

        with contextlib.suppress(Exception):  # an extension that nobody registered
            pickle.loads(data)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
