"""The facts of a process: start, heartbeat, exit; and another start in the child of a fork."""

from __future__ import annotations

import functools
import json
import os
import re
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from playhead_core.facts import ErrorRecord, Fact, digest_of
from playhead_core.process.coerced_locale import as_started
from playhead_core.process.environment import is_kept, storable_word
from playhead_core.process.installed_packages import installed
from playhead_core.process.interpreter_threads import Bell, Thread, make_lock
from playhead_core.process.own_descriptors import open_own, require_room
from playhead_core.process.own_messages import Log
from playhead_core.process.process_identity import BOOT, NAMESPACE, identity, machine, parse_stat
from playhead_core.settings import RECORDED_RUNS, Settings
from playhead_core.tape.protocols import Sink
from playhead_instrumentation.patching import at_fork, lanes
from playhead_instrumentation.patching.lanes import Shadow
from playhead_instrumentation.patching.program import Program, interpreter_options
from playhead_instrumentation.patching.runtime import RUNTIME
from playhead_instrumentation.patching.unpatched import REAL
from playhead_instrumentation.recorder.call import error_attributes
from playhead_instrumentation.redaction import Redactor
from playhead_instrumentation.session.agent_name import named
from playhead_instrumentation.session.environment import Imported, environment_attributes
from playhead_semconv import attributes as a
from playhead_semconv import events as e

_fstat: Final = os.fstat
_getpid: Final = os.getpid
_write: Final = os.write


def report(**line: str) -> None:
    """Add a line to the file of that command, if any: ``trace`` of a run, or a ``failed`` check."""
    with Shadow(), suppress(OSError):
        path = os.environ.get(RECORDED_RUNS, "")
        if not path:
            return
        with open_own(path, os.O_WRONLY | os.O_APPEND) as file:
            data = json.dumps({"pid": _getpid(), **line}).encode() + b"\n"
            require_room(_fstat(file.number).st_size + len(data))
            _write(file.number, data)


log = Log(__name__)

RunIds = Callable[[], tuple[bytes, bytes]]
"""Trace id (16 bytes) and span id (8 bytes) of the run root; asked again after a fork."""


class Identity(msgspec.Struct, frozen=True):
    """Who a process is: its run, how it came about, and what else its start fact says."""

    run: RunIds = lambda: (b"", b"")
    mode: str = "record"
    """``record``, ``replay``, ``fork`` or ``resume``."""
    attributes: Mapping[str, Any] = {}
    """Further attributes of the start fact: origin, parent instance, …"""


NO_RUN = Identity()
"""A process that belongs to no run."""


class Over:
    """Flag that a process has ended; the heartbeat thread waits for it."""

    def __init__(self) -> None:
        self.told = False
        self._bell = Bell()
        self._is_silent = False
        self._beating = make_lock()

    def tell(self) -> None:
        """Set the flag and wake the waiter."""
        self.told = True
        self._bell.ring()

    def wait(self, timeout_s: float) -> bool:
        """Wait for the flag; False after ``timeout_s``."""
        return self._bell.wait(timeout_s) or self.told

    def beat(self, append: Callable[[], object]) -> None:
        """Append a heartbeat, unless there are to be none."""
        with self._beating:
            if not self._is_silent:
                append()

    def silence(self) -> None:
        """Append no heartbeat from now on; waits for one that is being appended."""
        with self._beating:
            self._is_silent = True


class ProcessFacts:
    """Appends the facts of this process. The run root has its ``attributes`` too.

    ``level``: of the gate. It may change from strict to causal during the run, as the exit fact says.
    """

    def __init__(
        self,
        settings: Settings,
        sink: Sink,
        redactor: Redactor,
        level: Callable[[], str],
        identity: Identity,
    ) -> None:
        self.attributes: dict[str, Any] = {
            **describe(settings, redactor),
            a.PLAYHEAD_RUN_MODE: identity.mode,
            a.PLAYHEAD_RUN_LEVEL: level(),
            **identity.attributes,
        }
        self._settings = settings
        self._level = level
        self._sink = sink
        self._run = identity.run
        self._heartbeat_ms = settings.heartbeat_ms
        self._over = Over()
        self._parent = b""
        self._forked_in: dict[int, tuple[str, str]] = {}
        """Per thread that will fork: its exchange, and the instance whose tape the child continues."""
        self._execs: set[int] = set()
        """Threads whose forked child will exec another program."""
        self._redactor = redactor
        self._imported = Imported(lambda path: self._redactor.places.text(path))

    @property
    def run_ids(self) -> tuple[bytes, bytes]:
        """Trace id and span id of the root of this process; it may never be opened."""
        return self._run()

    def begin(self, attributes: Mapping[str, Any] | None = None) -> None:
        """Append the start fact and start the heartbeat. Repeated in the child of every fork.

        ``attributes``: further attributes of the start fact, given if the program is known only now.
        """
        if attributes is not None:
            program = _program(self._settings, self._redactor)
            self.attributes |= {**program, a.PLAYHEAD_RUN_LEVEL: self._level(), **attributes}
        self._start()
        at_fork.before_fork(self._before_fork)
        at_fork.in_child(self._after_fork)

    def end(self, exit_code: int | None, error: ErrorRecord | None = None) -> None:
        """Append the exit fact, once."""
        if self._over.told:
            return
        self._over.tell()
        attributes: dict[str, Any] = {**self.changed(), **self._imported.news()}
        if exit_code is not None:
            attributes[a.PLAYHEAD_PROCESS_EXIT_CODE] = exit_code
        if error is not None:
            message = self._redactor.text(error.message)
            attributes |= error_attributes(msgspec.structs.replace(error, message=message))
        self._append(e.PLAYHEAD_PROCESS_EXIT, attributes)

    @contextmanager
    def forks(self, exchange: str, origin: str = "", *, execs: bool = False) -> Generator[None]:
        """Context in which this thread forks, in the exchange with this id.

        ``execs``: the child will exec another program. ``origin``: instance (hex) of the tape that the
        child continues.
        """
        thread = threading.get_ident()
        self._forked_in[thread] = exchange, origin
        if execs:
            self._execs.add(thread)
        try:
            yield
        finally:
            del self._forked_in[thread]
            self._execs.discard(thread)

    def end_by_signal(self) -> None:
        """A signal is about to end the process: nothing more is appended, so that all is delivered."""
        self._over.silence()

    def changed(self) -> dict[str, Any]:
        """Attributes whose values differ from those in the start fact."""
        level = self._level()
        return {} if level == self.attributes[a.PLAYHEAD_RUN_LEVEL] else {a.PLAYHEAD_RUN_LEVEL: level}

    def _start(self) -> None:
        attributes: dict[str, Any] = {
            **self.attributes,
            a.PLAYHEAD_PROCESS_PID: os.getpid(),
            a.PLAYHEAD_PROCESS_HEARTBEAT_MS: self._heartbeat_ms,
        }
        own = own_identity()
        if own:
            attributes[a.PLAYHEAD_PROCESS_IDENTITY] = own
        if self._parent:
            attributes[a.PLAYHEAD_PROCESS_PARENT_INSTANCE] = self._parent.hex()
            attributes.pop(a.PLAYHEAD_PROCESS_PARENT_EXCHANGE, None)
            exchange, origin = self._forked_in.get(threading.get_ident(), ("", ""))
            if exchange:
                attributes[a.PLAYHEAD_PROCESS_PARENT_EXCHANGE] = exchange
            if origin and a.PLAYHEAD_ORIGIN_INSTANCE in attributes:
                attributes[a.PLAYHEAD_ORIGIN_INSTANCE] = origin
        self._append(e.PLAYHEAD_PROCESS_START, attributes)
        report(trace=self._run()[0].hex())
        Thread(f"{lanes.OWN_THREADS}heartbeat", functools.partial(self._beat, self._over)).start()

    def _beat(self, over: Over) -> None:
        while not over.wait(self._heartbeat_ms / 1000):
            try:
                over.beat(lambda: self._append(e.PLAYHEAD_PROCESS_HEARTBEAT, self._imported.news()))
            except Exception:  # our threads must not print tracebacks
                log.debug("playhead could not say that the process lives", exc_info=True)

    def _append(self, name: str, attributes: dict[str, Any]) -> None:
        # The number of this fact tells readers which facts must exist before it.
        trace_id, span_id = self._run()
        fact = Fact(REAL.time_ns(), lanes.MAIN.hash, name, trace_id, span_id, attributes=attributes)
        self._sink.append(fact)

    def _before_fork(self) -> None:
        self._parent = self._sink.instance

    def _after_fork(self) -> None:
        if threading.get_ident() in self._execs:
            self._over.tell()
        if not self._over.told:
            self._over = Over()
            self._imported = Imported(lambda path: self._redactor.places.text(path))
            self._start()


def describe(settings: Settings, redactor: Redactor) -> dict[str, Any]:
    """Description of the program for the start fact and the run root, without credentials."""
    cwd, options = os.getcwd(), [redactor.cleaned(one) for one in _options()]
    return {
        **_program(settings, redactor),
        a.PLAYHEAD_RUN_CWD: redactor.cleaned(cwd),
        a.PLAYHEAD_RUN_INTERPRETER: sys.executable,
        **({a.PLAYHEAD_RUN_INTERPRETER_OPTIONS: options} if options else {}),
        a.PLAYHEAD_RUN_PYTHON_VERSION: ".".join(map(str, sys.version_info[:3])),
        a.PLAYHEAD_RUN_PACKAGES: installed(sys.path),
        a.PLAYHEAD_RUN_ENVIRONMENT: environment(as_started(os.environ), redactor),
        a.PLAYHEAD_RUN_HASH_SEED: os.environ.get("PYTHONHASHSEED") or "random",
        **environment_attributes(cwd),
    }


def _options() -> Iterator[str]:
    """Options of the interpreter that change what the program does, each as one word."""
    words = iter(interpreter_options())
    for word in words:
        if word.startswith(("-W", "-X")):
            yield word + next(words, "") if len(word) == 2 else word
        elif letters := re.sub("[^Ob]", "", word) if not word.startswith("--") else "":
            yield f"-{letters}"


def running_program() -> Program:
    """The program that this process runs."""
    return RUNTIME.program or Program.of_interpreter()


def _program(settings: Settings, redactor: Redactor) -> dict[str, Any]:
    program = running_program()
    name = named(program.script, program.words())
    given = program.source if redactor.content else None
    source = {a.PLAYHEAD_RUN_SOURCE: redactor.text(given)} if given else {}
    return {
        a.PLAYHEAD_RUN_AGENT: redactor.cleaned(settings.agent or name.process),
        a.PLAYHEAD_RUN_ARGV: [storable_word(word) for word in redactor.arguments(program.words())],
        a.PLAYHEAD_RUN_SCRIPT: redactor.cleaned(program.script),
        a.PLAYHEAD_RUN_SCRIPT_DIGEST: _digest_of_file(program.script),
        **source,
    }


def environment(variables: Mapping[str, str], redactor: Redactor) -> list[str | bytes]:
    """Variables that a replay needs, as NAME=value, sorted; a credential is ``NAME=``."""
    kept: list[str | bytes] = []
    for name, value in sorted(variables.items()):
        if is_kept(name):
            secret = redactor.secret("variable", name.upper())
            text = "" if secret else redactor.text(redactor.url(value))
            kept.append(storable_word(f"{name}={text}"))
    return kept


def _digest_of_file(script: str) -> str:
    try:
        return digest_of(Path(script).read_bytes()).hex()
    except OSError:
        return ""


STAT = "/proc/self/stat"


def own_identity() -> str:
    """``boot/namespace/start``; empty where the system does not say it."""
    with lanes.Shadow():  # the files of the system that it reads are not the program's
        try:
            with open(BOOT, encoding="ascii") as boot, open(STAT, "rb") as stat:
                place = machine(boot.read(), os.readlink(NAMESPACE))
                return identity(place, parse_stat(stat.read()).started)
        except (OSError, ValueError):
            return ""
