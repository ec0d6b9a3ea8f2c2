"""The facts about files: what the program learned of them, and what it did to them."""

from __future__ import annotations

import time
from typing import Any, Final

from playhead_core.databases import ChangedBlocks, encode_blocks
from playhead_core.facts import Content, Fact, Fidelity, digest_of
from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.files.contents import DIGEST, Job
from playhead_instrumentation.libraries.files.workspace import Names
from playhead_instrumentation.libraries.sqlite_files import in_any_order
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.recorder.bodies import Bodies
from playhead_instrumentation.recorder.driver import Driver
from playhead_semconv import attributes as a
from playhead_semconv import events as e

log = Log(__name__)

CONTENT: Final = "file/content "
"""Prefix of the kind of a read that has the content of a large file."""

_now_ns: Final = time.time_ns


class FileFacts:
    """Puts facts about files on the tape, without credentials. Safe from any thread.

    A *question* names an operation and its paths as the tape spells them: ``stat ./notes.txt``. Nothing
    raises, except in `kept` and `scrubbed`.
    """

    def __init__(self, driver: Driver, names: Names) -> None:
        self._driver: Final = driver
        self._names: Final = names
        self._sink: Final = driver.sink
        self._redactor: Final = driver.redactor
        self.renew()

    def renew(self) -> None:
        """Start again after a fork: what the parent wrote is not on this instance's tape."""
        self.instance = self._sink.instance
        """The process instance on whose tape the contents are that count as written."""
        self._bodies = Bodies(self._redactor.body)
        self._large = Bodies(self._redactor.body)
        self.held: set[bytes] = set()
        """Digests of contents that are on the tape."""

    @property
    def forked(self) -> bool:
        """Whether this process is a fork of the one whose contents count as written."""
        return self.instance != self._sink.instance

    @property
    def content(self) -> bool:
        """Whether contents go on the tape; otherwise only their sizes do."""
        return self._redactor.content

    def target(self, path: str, to: str = "") -> str:
        """Return the paths of an operation as the tape spells them."""
        short = self._redactor.text(self._names.short(path))
        return f"{short} {self._redactor.text(self._names.short(to))}" if to else short

    def question(self, op: str, path: str, to: str = "") -> str:
        """Name an operation. ``op``: without spaces. ``path``: absolute. ``to``: a second path."""
        return f"{op} {self.target(path, to)}"

    def read(
        self,
        question: str,
        value: bytes | Content | None,
        values: dict[str, Any],
        fidelity: Fidelity | None = None,
    ) -> None:
        """The program has learned ``value``; ``values`` are further attributes of the fact."""
        try:
            body = Content(b"", len(value), value) if isinstance(value, bytes) else value
            if fidelity is not None:
                values = {**values, a.PLAYHEAD_FIDELITY: fidelity}
            lane = lanes.current()
            if lane.declared_on != self._sink.instance:
                self._driver.declare(lane)
            attributes = {a.PLAYHEAD_READ_KIND: f"file/{question}", **values}
            self._sink.append(
                Fact(_now_ns(), lane.hash, e.PLAYHEAD_READ, attributes=attributes, body=body)
            )
        except Exception:
            log.debug("playhead could not record a read of a file", exc_info=True)

    def did(
        self,
        question: str,
        values: dict[str, Any],
        body: Content | None = None,
        fidelity: Fidelity | None = None,
    ) -> None:
        """The program has changed a file."""
        op, _, target = question.partition(" ")
        try:
            self._driver.effect(f"file.{op}", target, body, fidelity=fidelity, attributes=values)
        except Exception:
            log.debug("playhead could not record an effect on a file", exc_info=True)

    def holds(self, job: Job, what: bytes | str) -> None:
        """A large file that was opened has the content ``what``, or why it is not kept."""
        try:
            values: dict[str, Any] = {
                a.PLAYHEAD_READ_KIND: f"{CONTENT}{self.target(job.path)}",
                a.PLAYHEAD_FILE_CONTENT: job.number,
                a.PLAYHEAD_FILE_SIZE: job.size,
            }
            content: Content | None = None
            if isinstance(what, bytes):
                _, content, count = self._large.written(what)
                if count:
                    values[a.PLAYHEAD_REDACTED_COUNT] = count
            elif what.startswith(DIGEST):
                values[a.PLAYHEAD_FILE_DIGEST] = what[len(DIGEST) :]
            else:
                values[a.PLAYHEAD_FILE_UNKEPT] = what
            there = content is not None and content.digest in self.held
            body = Content(content.digest, content.size) if there and content else content
            self._sink.append(Fact(_now_ns(), job.lane, e.PLAYHEAD_READ, attributes=values, body=body))
            if content is not None:
                self.held.add(content.digest)  # its bytes are on the tape now
        except Exception:
            log.debug("playhead could not record what a file holds", exc_info=True)

    def kept(self, data: bytes | None, values: dict[str, Any]) -> Content | None:
        """``data`` for the tape; each content is put there once. Redactions are noted in ``values``."""
        if data is None:
            return None
        if not self._redactor.content:
            return Content(b"", len(data))
        _, content, count = self._bodies.written(data)
        if count:
            values[a.PLAYHEAD_REDACTED_COUNT] = count
        return self._once(content)

    def scrubbed(self, data: bytes, values: dict[str, Any]) -> Content:
        """As above, for a database: stars replace credentials, so that its pages stay valid."""
        if not self._redactor.content:
            return Content(b"", len(data))
        scrub = self._redactor.response("", "")
        kept = scrub.chunk(data)
        if scrub.count:
            values[a.PLAYHEAD_REDACTED_COUNT] = scrub.count
        return self._once(Content(digest_of(kept), len(kept), kept))

    def database(self, path: str, news: ChangedBlocks | str) -> None:
        """Say what has changed in a database, or why that is not known. Stars replace credentials."""
        values: dict[str, Any] = {a.PLAYHEAD_DATABASE_PATH: self.target(path)}
        body: Content | None = None
        if isinstance(news, str):
            values[a.PLAYHEAD_DATABASE_UNKEPT] = news
        elif not self._redactor.content:
            values[a.PLAYHEAD_DATABASE_UNKEPT] = "content"
        else:
            scrub = self._redactor.response("", "")
            data = scrub.chunk(news.data)
            if scrub.count:
                values[a.PLAYHEAD_REDACTED_COUNT] = scrub.count
            body = Content.of(encode_blocks(ChangedBlocks(news.size, news.indexes, data)))
        lane = lanes.current()
        if lane.declared_on != self._sink.instance:
            self._driver.declare(lane)
        self._sink.append(Fact(_now_ns(), lane.hash, e.PLAYHEAD_DATABASE, attributes=values, body=body))

    def digest(self, data: bytes) -> str:
        """Return the digest of ``data`` without credentials, as hex digits."""
        return digest_of(self._redactor.body(data)[0]).hex()

    def digests(self, sql: bytes) -> dict[str, Any]:
        """Return the digests of what a database holds, for the fact about a change of it."""
        return {
            a.PLAYHEAD_FILE_DIGEST: self.digest(sql),
            a.PLAYHEAD_FILE_ROWS_DIGEST: self.digest(in_any_order(sql)),
        }

    def _once(self, content: Content) -> Content:
        if content.digest in self.held:
            return Content(content.digest, content.size)
        self.held.add(content.digest)
        return content
