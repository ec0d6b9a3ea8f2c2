"""The facts of a process: how it started, that it lives, how it ended; and a new start after a fork."""

from __future__ import annotations

import functools
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec

from playhead_instrumentation.driver.call import error_attributes
from playhead_instrumentation.redaction import Redactor
from playhead_instrumentation.runtime import at_fork, lanes
from playhead_instrumentation.session.surroundings import Imported
from playhead_instrumentation.session.surroundings import describe as surroundings
from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.facts import ErrorRecord, Fact, digest_of
from playhead_semconv.process.interpreter_threads import Bell, Thread
from playhead_semconv.process.kept_environment import is_kept
from playhead_semconv.settings import Settings
from playhead_semconv.tape.protocols import Sink

log = logging.getLogger(__name__)

RunIds = Callable[[], tuple[bytes, bytes]]
"""Trace id (16 bytes) and span id (8 bytes) of the run root; asked again after a fork."""


class Over:
    """Whether a process has ended, and the wait of its heartbeat for that."""

    def __init__(self) -> None:
        self.told = False
        self._bell = Bell()

    def tell(self) -> None:
        """It has."""
        self.told = True
        self._bell.ring()

    def wait(self, timeout_s: float) -> bool:
        """Until it has; False after ``timeout_s``."""
        return self._bell.wait(timeout_s) or self.told


class Process:
    """Appends the facts of this process. Its ``attributes`` stand on the run root too.

    ``level``: of the gate, which may turn causal while the program runs; the exit fact says so then.
    """

    def __init__(
        self,
        settings: Settings,
        mode: str,
        level: Callable[[], str],
        sink: Sink,
        redactor: Redactor,
        run: RunIds | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        self.attributes: dict[str, Any] = {
            **describe(settings, redactor),
            a.PLAYHEAD_RUN_MODE: mode,
            a.PLAYHEAD_RUN_LEVEL: level(),
            **(attributes or {}),
        }
        self._settings = settings
        self._level = level
        self._sink = sink
        self._run = run or (lambda: (b"", b""))
        self._heartbeat_ms = settings.heartbeat_ms
        self._over = Over()
        self._parent = b""
        self._forked_in: dict[int, tuple[str, str]] = {}
        """In which exchange a thread is about to fork, and which process the fork goes on from."""
        self._execs: set[int] = set()
        """Threads whose forks become other programs."""
        self._redactor = redactor
        self._imported = Imported(lambda path: self._redactor.places.text(path))

    def begin(self, attributes: Mapping[str, Any] | None = None) -> None:
        """Append the start fact and start the heartbeat; again in the child of every fork.

        ``attributes``: it turned out only now what program runs; more of the start fact.
        """
        if attributes is not None:
            program = _program(self._settings, self._redactor)
            self.attributes |= {**program, a.PLAYHEAD_RUN_LEVEL: self._level(), **attributes}
        self._start()
        at_fork.before_fork(self._before_fork)
        at_fork.in_child(self._after_fork)

    def end(self, exit_code: int | None, error: ErrorRecord | None = None) -> None:
        """Append the exit fact. Once."""
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
        """This thread forks inside, in an exchange of that id; ``execs``: to become another program.

        ``origin``: the instance on whose tape the forked process goes on, hex.
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

    def changed(self) -> dict[str, Any]:
        """What is not any more as the start fact says it."""
        level = self._level()
        return {} if level == self.attributes[a.PLAYHEAD_RUN_LEVEL] else {a.PLAYHEAD_RUN_LEVEL: level}

    def _start(self) -> None:
        attributes: dict[str, Any] = {
            **self.attributes,
            a.PLAYHEAD_PROCESS_PID: os.getpid(),
            a.PLAYHEAD_PROCESS_HEARTBEAT_MS: self._heartbeat_ms,
        }
        if self._parent:
            attributes[a.PLAYHEAD_PROCESS_PARENT_INSTANCE] = self._parent.hex()
            attributes.pop(a.PLAYHEAD_PROCESS_PARENT_EXCHANGE, None)
            exchange, origin = self._forked_in.get(threading.get_ident(), ("", ""))
            if exchange:
                attributes[a.PLAYHEAD_PROCESS_PARENT_EXCHANGE] = exchange
            if origin and a.PLAYHEAD_ORIGIN_INSTANCE in attributes:
                attributes[a.PLAYHEAD_ORIGIN_INSTANCE] = origin
        self._append(e.PLAYHEAD_PROCESS_START, attributes)
        Thread(f"{lanes.OWN_THREADS}heartbeat", functools.partial(self._beat, self._over)).start()

    def _beat(self, over: Over) -> None:
        while not over.wait(self._heartbeat_ms / 1000):
            try:
                self._append(e.PLAYHEAD_PROCESS_HEARTBEAT, self._imported.news())
            except Exception:  # a traceback of a thread of ours is no output of the program
                log.debug("playhead could not say that the process lives", exc_info=True)

    def _append(self, name: str, attributes: dict[str, Any]) -> None:
        # Its own number says what must have come before it.
        trace_id, span_id = self._run()
        fact = Fact(time.time_ns(), lanes.MAIN.hash, name, trace_id, span_id, attributes=attributes)
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
    """What a process-start fact and a run root say of the program, credentials removed."""
    cwd = os.getcwd()
    return {
        **_program(settings, redactor),
        a.PLAYHEAD_RUN_CWD: cwd,
        a.PLAYHEAD_RUN_INTERPRETER: sys.executable,
        a.PLAYHEAD_RUN_PYTHON_VERSION: ".".join(map(str, sys.version_info[:3])),
        a.PLAYHEAD_RUN_PACKAGES: packages(),
        a.PLAYHEAD_RUN_ENVIRONMENT: environment(os.environ, redactor),
        a.PLAYHEAD_RUN_HASH_SEED: os.environ.get("PYTHONHASHSEED") or "random",
        **surroundings(cwd),
    }


def _program(settings: Settings, redactor: Redactor) -> dict[str, Any]:
    script, words = command()
    agent = settings.agent or Path(script.removeprefix("-m ")).stem
    given = _source() if redactor.content else ""
    source = {a.PLAYHEAD_RUN_SOURCE: redactor.text(given)} if given else {}
    return {
        a.PLAYHEAD_RUN_AGENT: agent or "python",
        a.PLAYHEAD_RUN_ARGV: [_as_given(word) for word in redactor.arguments(words)],
        a.PLAYHEAD_RUN_SCRIPT: script,
        a.PLAYHEAD_RUN_SCRIPT_DIGEST: _digest_of_file(script),
        **source,
    }


def _as_given(word: str) -> str | bytes:
    """A word of the command line as a fact can hold it: one that is no UTF-8 as its bytes."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return os.fsencode(word)
    return word


_announced: tuple[str, list[str]] | None = None
_announced_source = ""


def announce(script: str, words: list[str], source: str = "") -> None:
    """Say what program runs, where this process runs it itself.

    ``script``: a path, ``-m MODULE``, or ``-c`` with its ``source``.
    """
    global _announced, _announced_source
    _announced, _announced_source = (script, words), source


def command() -> tuple[str, list[str]]:
    """The program as the interpreter was told: a path or ``-m MODULE``; and its words, it first."""
    if _announced is not None:
        return _announced
    words = _words()
    if not words:
        return "", []
    if words[0] == "-m" and len(words) > 1:
        return f"-m {words[1]}", words[1:]
    if words[0] == "-c":
        return "-c", ["-c", *words[2:]]
    return words[0], words


def _source() -> str:
    """The program where it stands on the command line; empty where it does not."""
    if _announced is not None:
        return _announced_source
    words = _words()
    return words[1] if words[:1] == ["-c"] and len(words) > 1 else ""


def _words() -> list[str]:
    """The command line behind the interpreter and its flags.

    At the time of ``sitecustomize`` ``sys.argv`` is not whole yet; ``sys.orig_argv`` is.
    """
    words = sys.orig_argv[1:]
    while words and words[0].startswith("-") and words[0] not in ("-m", "-c", "-"):
        flag = words.pop(0)
        if flag in ("-W", "-X", "--check-hash-based-pycs") and words:
            words.pop(0)
    return words


def packages() -> list[str]:
    """Installed distributions as name==version, sorted."""
    found = {_name_and_version(one) for one in metadata.distributions()}
    return sorted(found, key=str.lower)


def _name_and_version(one: metadata.Distribution) -> str:
    """From the first lines that say so: to parse all of it takes some time, with every start."""
    said: dict[str, str] = {}
    for line in (one.read_text("METADATA") or "").splitlines():
        name, colon, value = line.partition(": ")
        if not colon or len(said) == 2:
            break
        if name in ("Name", "Version"):
            said[name] = value.strip()
    return f"{said['Name']}=={said['Version']}" if len(said) == 2 else f"{one.name}=={one.version}"


def environment(variables: Mapping[str, str], redactor: Redactor) -> list[str]:
    """The variables that a replay needs as NAME=value, sorted; a credential as ``NAME=``."""
    kept: list[str] = []
    for name, value in sorted(variables.items()):
        if is_kept(name):
            secret = redactor.secret("variable", name.upper())
            kept.append(f"{name}={'' if secret else redactor.text(redactor.url(value))}")
    return kept


def _digest_of_file(script: str) -> str:
    try:
        return digest_of(Path(script).read_bytes()).hex()
    except OSError:
        return ""
