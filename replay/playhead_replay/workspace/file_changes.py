"""Reads file changes from a tape: each change that the run made, in order of time, and its reads."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import msgspec

from playhead_core.errors import CorruptTape, TapeError
from playhead_core.facts import Fact, digest_of
from playhead_core.file_names import tape_name
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_semconv import attributes as a
from playhead_semconv import events as e

What: TypeAlias = Literal[
    "seen",
    "opened",
    "written",
    "appended",
    "removed",
    "folder",
    "link",
    "renamed",
    "copied",
    "mode",
    "cut",
]
"""``seen``: the content that the run read; ``opened``: for writing; ``copied``: a hard link;
``cut``: to a length."""

HERE = "./"
"""Prefix of names below the folder of the run."""

_MODE = re.compile(r"(?s)(.*) (?:mode=)?([0-9]+)(?:, .*)?\Z")
_LENGTH = re.compile(r"(?s)(.*) (?:length=)?([0-9]+)\Z")


@dataclass(frozen=True, slots=True)
class FileChange:
    """One change of a file. Names are as on the tape: ``./notes.txt``."""

    time_ns: int
    what: What
    name: str
    to: str = ""
    """The new name; for a link, its target."""
    data: Callable[[], bytes | None] = lambda: None
    """The content, or the appended part; None if it is not on the tape."""
    start: int = 0
    """Where the appended part begins; for ``cut``, the length."""
    mode: int = 0
    mtime_ns: int = 0
    how: str = ""
    """Of ``opened``: write, append or update."""
    redacted: bool = False
    """Whether credentials in the content were replaced."""
    span_id: str = ""
    """The span in which it happened, hex; empty if unknown."""


class _ChildChange(msgspec.Struct, array_like=True):
    """A change by a child process: see "What a child process changed" in the tape format."""

    path: str
    what: str
    st_mode: int = 0
    data: bytes | None = None
    digest: bytes = b""
    size: int = 0
    mtime_ns: int = 0


_child_changes = msgspec.msgpack.Decoder(list[_ChildChange])


def file_changes(tape: IndexedTape) -> Iterator[FileChange]:
    """Yield the file changes of a tape, in order. `CorruptTape` if the facts are malformed."""
    try:
        yield from _file_changes(tape)
    except (TypeError, ValueError, OverflowError) as problem:
        raise CorruptTape("the tape has malformed facts about files") from problem


def _file_changes(tape: IndexedTape) -> Iterator[FileChange]:
    large: dict[Any, Fact] = {
        fact.attributes.get(a.PLAYHEAD_FILE_CONTENT): fact
        for fact in tape.named(e.PLAYHEAD_READ)
        if str(fact.attributes.get(a.PLAYHEAD_READ_KIND, "")).startswith("file/content ")
    }
    for fact in tape.named(e.PLAYHEAD_READ, e.PLAYHEAD_EFFECT, e.PLAYHEAD_EXCHANGE_END):
        span_id = fact.span_id.hex()
        for change in _changes_of_fact(fact, tape, large):
            yield replace(change, span_id=span_id) if span_id else change


def _changes_of_fact(fact: Fact, tape: IndexedTape, large: dict[Any, Fact]) -> Iterator[FileChange]:
    if fact.name == e.PLAYHEAD_READ:
        yield from _opened(fact, tape, large)
    elif fact.name == e.PLAYHEAD_EFFECT:
        kind = str(fact.attributes.get(a.PLAYHEAD_EFFECT_KIND, ""))
        if kind.startswith("file."):
            name = str(fact.attributes.get(a.PLAYHEAD_EFFECT_TARGET, ""))
            yield from _done(kind.removeprefix("file."), name, fact, tape)
    elif fact.exchange is not None and fact.exchange.kind == "process":
        yield from _by_child(fact, tape)


def _opened(fact: Fact, tape: IndexedTape, large: dict[Any, Fact]) -> Iterator[FileChange]:
    at = fact.attributes
    kind, _, name = str(at.get(a.PLAYHEAD_READ_KIND, "")).partition(" ")
    if not kind.startswith("file/open") or at.get(a.PLAYHEAD_FILE_ERROR) is not None:
        return
    mode = int(at.get(a.PLAYHEAD_FILE_MODE, 0))
    if not stat.S_ISREG(mode):
        return
    how = kind.removeprefix("file/open").removeprefix("-")
    if how in ("", "update"):
        content_fact = large.get(at.get(a.PLAYHEAD_FILE_CONTENT, 0), fact)
        data = _reading(content_fact, tape)
        mtime_ns = int(at.get(a.PLAYHEAD_FILE_MTIME_NS, 0))
        redacted = _is_redacted(content_fact)
        yield FileChange(
            fact.time_ns,
            "seen",
            name,
            data=data,
            mode=stat.S_IMODE(mode),
            mtime_ns=mtime_ns,
            redacted=redacted,
        )
    if how:
        start = int(at.get(a.PLAYHEAD_FILE_OFFSET, 0))
        yield FileChange(fact.time_ns, "opened", name, start=start, mode=stat.S_IMODE(mode), how=how)


def _done(op: str, target: str, fact: Fact, tape: IndexedTape) -> Iterator[FileChange]:
    at, time_ns = fact.attributes, fact.time_ns
    if op == "write":
        data, redacted = _reading(fact, tape), _is_redacted(fact)
        yield FileChange(time_ns, "written", target, data=data, redacted=redacted)
    elif op == "append":
        start = int(at.get(a.PLAYHEAD_FILE_OFFSET, 0))
        data, redacted = _reading(fact, tape), _is_redacted(fact)
        yield FileChange(time_ns, "appended", target, data=data, start=start, redacted=redacted)
    elif op in ("remove", "unlink", "rmdir"):
        yield FileChange(time_ns, "removed", target)
    elif op == "mkdir":
        yield FileChange(time_ns, "folder", target)
    elif op in ("rename", "link"):
        one, other = two_names(target)
        yield FileChange(time_ns, "renamed" if op == "rename" else "copied", one, other)
    elif op == "symlink":
        name, _, to = target.partition(" ")
        yield FileChange(time_ns, "link", name, to)
    elif op == "chmod" and (found := _MODE.match(target)):
        yield FileChange(time_ns, "mode", found[1], mode=int(found[2]) & 0o7777)
    elif op == "truncate" and (found := _LENGTH.match(target)):
        yield FileChange(time_ns, "cut", found[1], start=int(found[2]))


def two_names(target: str) -> tuple[str, str]:
    """Two names: the second begins where ``./``, ``~/`` or ``/`` follows a space."""
    found = re.search(r" (?=\./|~/|/)", target)
    if found is None:
        return target.partition(" ")[0], target.partition(" ")[2]
    return target[: found.start()], target[found.end() :]


def _by_child(fact: Fact, tape: IndexedTape) -> Iterator[FileChange]:
    if fact.body is None:
        return
    try:
        changes = _child_changes.decode(tape.read(fact.body))
    except (msgspec.DecodeError, TapeError):
        return
    for one in changes:
        mode = stat.S_IMODE(one.st_mode)
        if one.what == "written":
            redacted = one.data is not None and digest_of(one.data) != one.digest
            data = _constant(one.data)
            yield FileChange(
                fact.time_ns,
                "written",
                one.path,
                data=data,
                mode=mode,
                mtime_ns=one.mtime_ns,
                redacted=redacted,
            )
        elif one.what == "deleted":
            yield FileChange(fact.time_ns, "removed", one.path)
        elif one.what == "link":
            target = tape_name((one.data or b"").decode("utf-8", "surrogateescape"))
            yield FileChange(fact.time_ns, "link", one.path, target)
        elif one.what in ("folder", "mode"):
            what: What = "folder" if one.what == "folder" else "mode"
            yield FileChange(fact.time_ns, what, one.path, mode=mode)


def _constant(data: bytes | None) -> Callable[[], bytes | None]:
    return lambda: data


def _reading(fact: Fact, tape: IndexedTape) -> Callable[[], bytes | None]:
    def read() -> bytes | None:
        body = fact.body
        if body is None or not (body.digest or body.inline is not None):
            return None
        try:
            return tape.read(body)
        except TapeError:
            return None

    return read


def _is_redacted(fact: Fact) -> bool:
    return bool(fact.attributes.get(a.PLAYHEAD_REDACTED_COUNT))
