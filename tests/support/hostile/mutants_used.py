"""What is done with a hostile tape beyond reading it: replay, fork, export, import, pages."""

from __future__ import annotations

import pickle
import random
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Self

import httpx

from playhead_cli.commands.inspect.artifacts import _file_name
from playhead_cli.output.comparison import diff_page
from playhead_core.errors import PlayheadError
from playhead_core.facts import Fact
from playhead_core.file_names import below
from playhead_core.process.environment import may_be_restored
from playhead_exporter.delivery import Signal
from playhead_instrumentation.libraries.files.changes import decode_changes
from playhead_instrumentation.libraries.files.workspace import Names, Workspace
from playhead_instrumentation.libraries.multiprocessing.recorded_pickles import refusal
from playhead_instrumentation.replayer.service.named_application import (
    application_at,
    require_importable,
)
from playhead_receiver.archive import run_files
from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_replay import Environment, Run
from playhead_replay.diff import diff
from playhead_replay.forks.resume import GoingOn, resume_of
from playhead_replay.goldens.golden_file import write_golden
from playhead_replay.runner.configuration import ReplayConfiguration
from playhead_replay.runner.process_start import program_of
from playhead_replay.runner.replaying import Replay
from playhead_replay.tape_files.tape_file import read_tape_file, read_unfinished, write_tape_file
from playhead_replay.workspace.artifacts import artifacts_of
from playhead_replay.workspace.history import WorkspaceHistory, lay

PAGES_OF_RUN = (
    "",
    "/summary",
    "/outline",
    "/transcript",
    "/kept",
    "/chunks",
    "/moment",
    "/places",
    "/artifacts",
    "/export",
)
PAGES = ("/v1/runs", "/v1/stats", "/v1/conversations", "/v1/search?q=x", "/api/search", "/api/services")
PIECES = (
    b"cos\nsystem\n",
    b"(S'id'\nios\nsystem\n",
    b"\x8c\x08builtins\x8c\x04eval\x93",
    b"R",
    b"o",
    b"b",
    b"\x81",
    b"\x92",
    b"\x85",
    b"\x94",
    b"h\0",
    b"Pevil\n",
    b"Q",
    b"\x82\x01",
    b"(",
    b".",
    b"S'id'\n",
)
"""Opcodes that name and call things, to be put into real messages."""


class Reading:
    """A receiver that stores tapes, and whose pages are read."""

    def __init__(self, folder: Path) -> None:
        self._receiver = Receiver(
            folder / "data", Configuration(Addresses(http_port=0, grpc_port=0, query_port=0))
        )
        self._client = httpx.Client(timeout=60, trust_env=False)
        self.count = 0
        self.reached: Counter[str] = Counter()
        """How often each of the uses came to its end."""

    def __enter__(self) -> Self:
        self._receiver.__enter__()
        return self

    def __exit__(self, *problem: Any) -> None:
        self._client.close()
        self._receiver.__exit__(*problem)

    def read(self, file: Path) -> None:
        """Import a file, and read every page of the runs that it brought."""
        for signal, body in run_files.incoming(file).requests():
            kind = {"content-type": "application/x-protobuf"}
            self._client.post(
                f"{self._receiver.http_endpoint}/v1/{Signal(signal).value}", content=body, headers=kind
            )
        listed = self._get("/v1/runs").json()["runs"]
        for run in listed[:1]:
            for page in PAGES_OF_RUN:
                self._get(f"/v1/runs/{run['trace_id']}{page}")
            self._get(f"/v1/diff?left={run['trace_id']}&right={run['trace_id']}")
            self._get(f"/api/traces/{run['trace_id']}")
        for page in PAGES:
            self._get(page)

    def _get(self, page: str) -> httpx.Response:
        try:
            answer = self._client.get(f"{self._receiver.query_endpoint}{page}")
        except httpx.RemoteProtocolError:  # a damaged tape, found while it was written out
            assert page.endswith("/export"), page
            return httpx.Response(200)
        assert "about:blank" not in answer.text or answer.status_code < 500, (page, answer.text[:500])
        self.count += 1
        return answer


def use_more(file: Path, scratch: Path, pick: random.Random, reading: Reading) -> None:
    """Do with ``file`` what an import, a replay, a fork, a golden and an export do before they start."""
    messages(pick)
    if file.parent.name != "in":
        return
    if pick.random() < 0.1:
        reading.read(file)
    found = read_unfinished(file)
    run = Run.of_tapes(found.tapes, found.spans, "x")
    for action in (settings, forked, laid, exported, shown, applications):
        try:
            action(run, scratch)
        except (PlayheadError, OSError):
            continue
        reading.reached[action.__name__] += 1
    for tape in run.tapes:
        for fact in tape.facts():
            changes_of_child(fact, scratch)


def messages(pick: random.Random) -> None:
    """A message of `multiprocessing`, with opcodes put into it, is loaded only if it calls nothing."""
    value = (0, 1, len, ("abc",), {"x": [1.5, {2}], "path": Path("a")})
    data = bytearray(pickle.dumps(value, pick.randint(0, pickle.HIGHEST_PROTOCOL)))
    for _ in range(pick.randint(1, 5)):
        at = pick.randrange(len(data) + 1)
        data[at:at] = pick.choice(PIECES)
    if refusal(bytes(data)):
        return
    try:
        pickle.loads(bytes(data))
    except Exception:
        return


def settings(run: Run, scratch: Path) -> None:
    """The settings of a foreign run choose neither code nor interpreter."""
    around = Environment(folder=scratch / "agent", environ={"PATH": "/bin"}, foreign=True)
    try:
        ready = Replay.of(run, ReplayConfiguration(around))
    except PlayheadError:
        command = around.command_of(run.command, live=False)
    else:
        command = ready.command
        assert ready.interpreter == sys.executable
        assert program_of(ready.command, ready.requests)
    child = around.environment_of(command)
    for name in child:
        own = name in ("PATH", "PYTHONHASHSEED", "OPENAI_API_KEY", "ANTHROPIC_API_KEY")
        assert own or may_be_restored(name, live=False), name


def forked(run: Run, scratch: Path) -> None:
    """As `settings`, for a process that goes on for real."""
    around = Environment(folder=scratch / "agent", environ={"PATH": "/bin"}, foreign=True)
    ready = resume_of(run, GoingOn(lambda *_: "resend"), repeat_effects=True).prepare(scratch, around)
    assert ready.words[0] == sys.executable and "--" in ready.words
    assert "evil" not in str(ready.environ)


def laid(run: Run, scratch: Path) -> None:
    """The files of a run are laid out below the folder, and artifacts have plain names."""
    folder = scratch / "laid"
    shutil.rmtree(folder, ignore_errors=True)
    history = WorkspaceHistory(run)
    lay(history.after(len(run.steps)).tree, folder)
    for one in artifacts_of(run):
        name = _file_name(one)
        assert below(name) and "/" not in name
        one.read()


def exported(run: Run, scratch: Path) -> None:
    """Written as a tape and as a golden, it reads the same."""
    write_tape_file(scratch / "out.tape", run.tapes)
    read_tape_file(scratch / "out.tape")
    write_golden(scratch / "golden.tape", run)


def shown(run: Run, scratch: Path) -> None:
    """The page of a comparison has nothing of the run as markup or template."""
    page = diff_page(diff(run, run))
    assert "<script>evil" not in page and "\x1b" not in page and "49evil" not in page


def applications(run: Run, scratch: Path) -> None:
    """No application that a tape names is evaluated."""
    for one in run.requests:
        module, _, path = one.application.partition(":")
        require_importable(module)
        application_at(sys.modules[__name__], path, marked=one.is_marked)


def changes_of_child(fact: Fact, scratch: Path) -> None:
    """What a recorded child did to files is done again in the scratch folder only."""
    if fact.body is None or not fact.body.inline:
        return
    try:
        changes = decode_changes(fact.body.inline)
    except Exception:
        return
    laid = Workspace(Names("/run", "/home"), place=lambda path: f"{scratch}/tree{path}")
    laid.apply(changes)
