"""What a run made: what the program named, the files that it wrote, and media in its messages."""

from __future__ import annotations

import base64
import binascii
import mimetypes
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, TypeAlias, cast

from playhead_core.errors import TapeMissing, UsageError
from playhead_core.facts import Content, Fact, digest_of
from playhead_core.file_names import below
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_genai.messages import Blob, ToolCallResponse, modality_of
from playhead_replay.json_objects.recorded import ArtifactItem
from playhead_replay.run.run import Run
from playhead_replay.workspace.file_changes import HERE, FileChange
from playhead_replay.workspace.history import WorkspaceHistory, changes_of
from playhead_semconv import attributes as a
from playhead_semconv import events as e

Made: TypeAlias = Literal["named", "file", "message"]
"""``named``: by `playhead.artifact`; ``file``: written below the run's folder; ``message``: in one."""

SHORTEST_DIGEST = 8
"""Hex digits of a digest by which an artifact is found."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """Something that a run made, or was given in a message."""

    name: str
    made: Made
    media_type: str
    """Empty if it is unknown."""
    size_bytes: int
    digest: str
    """BLAKE3 of the content, hex; empty where it is not kept."""
    span_id: str
    """The span that made it; empty where none is known."""
    step: int | None
    """The step that the span is or belongs to."""
    time_ns: int
    why: str = ""
    """Why the content is not there, or not as it was; empty where it is."""
    _read: Callable[[], bytes] | None = field(default=None, compare=False, repr=False)

    def to_json(self) -> ArtifactItem:
        """As an object of plain values, without the content."""
        return {
            "name": self.name,
            "made": self.made,
            "media_type": self.media_type,
            "size_bytes": self.size_bytes,
            "digest": self.digest,
            "span_id": self.span_id,
            "step": self.step,
            "time_ns": self.time_ns,
            "inexact": self.why or None,
        }

    def read(self) -> bytes:
        """The content. `UsageError` where it was not kept, `TapeError` where it is damaged."""
        if self._read is None:
            raise UsageError(f"the content of {self.name} is not on the tape", cause=self.why)
        return self._read()


def artifacts_of(run: Run) -> list[Artifact]:
    """What a run made, in order of time: of a file its last content; equal media of messages once."""
    found = [*_named(run), *_files(run), *_of_messages(run)]
    return sorted(found, key=lambda one: (one.time_ns, one.name))


def artifact_with(run: Run, wanted: str) -> Artifact:
    """The artifact with this digest, a prefix of it of 8 digits, or this name: the last one of it.

    `UsageError` where there is none.
    """
    found = artifacts_of(run)
    digits = wanted.lower()
    if len(digits) >= SHORTEST_DIGEST:
        same = {one.digest: one for one in found if one.digest.startswith(digits)}
        if len(same) > 1:
            raise UsageError(f"{wanted} begins several digests of {run.name}")
        if same:
            return next(iter(same.values()))
    named = [one for one in found if one.name == wanted]
    if not named:
        raise UsageError(f"{run.name} has no artifact {wanted}", hint=f"playhead artifacts {run.name}")
    return named[-1]


def _named(run: Run) -> Iterator[Artifact]:
    for tape in run.tapes:
        for fact in tape.named(e.PLAYHEAD_ARTIFACT):
            yield _of_fact(run, tape, fact)


def _of_fact(run: Run, tape: IndexedTape, fact: Fact) -> Artifact:
    at, body = fact.attributes, fact.body
    why = {"large": "it is larger than file-limit-bytes", "unreadable": "it could not be read"}.get(
        str(at.get(a.PLAYHEAD_ARTIFACT_UNKEPT, "")), ""
    )
    count = at.get(a.PLAYHEAD_REDACTED_COUNT)
    if count:
        why = f"{count} credentials in it were replaced"
    elif body is None and not why:
        why = "no content was recorded"
    return Artifact(
        str(at.get(a.PLAYHEAD_ARTIFACT_NAME, "")),
        "named",
        str(at.get(a.PLAYHEAD_ARTIFACT_MEDIA_TYPE, "")),
        int(at.get(a.PLAYHEAD_ARTIFACT_SIZE_BYTES, 0)),
        "" if body is None else body.digest.hex(),
        *_place(run, fact.span_id.hex()),
        fact.time_ns,
        why,
        None if body is None else _reading(tape, body),
    )


def _reading(tape: IndexedTape, body: Content) -> Callable[[], bytes]:
    return lambda: tape.read(body)


def _place(run: Run, span_id: str) -> tuple[str, int | None]:
    step = run.step_of(span_id) if span_id else None
    return span_id, None if step is None else step.number


def _files(run: Run) -> Iterator[Artifact]:
    """The files that are there at the end and that the run wrote, as far as the tape tells of them."""
    try:
        end = WorkspaceHistory(run).after(len(run.steps))
    except (UsageError, TapeMissing):
        return  # nothing is known of files
    last = _last_changes(changes_of(run))
    if not last:
        last = _from_snapshots(run)
    for path, change in last.items():
        item = end.tree.get(path)
        if item is None or item.entry.kind != "file":
            continue
        yield Artifact(
            path,
            "file",
            mimetypes.guess_type(path)[0] or "",
            item.entry.size,
            item.entry.digest.hex(),
            *_place(run, change.span_id),
            change.time_ns,
            item.why,
            item.content,
        )


def _last_changes(changes: Iterable[FileChange]) -> dict[str, FileChange]:
    """The last change of each file below the folder that wrote to it, by path."""
    found: dict[str, FileChange] = {}
    for change in changes:
        name = change.to if change.what in ("renamed", "copied") else change.name
        if change.what in ("written", "appended", "cut", "renamed", "copied") and name.startswith(HERE):
            path = name[len(HERE) :]
            if below(path):
                found[path] = change
    return found


def _from_snapshots(run: Run) -> dict[str, FileChange]:
    """The same from snapshots, where the tape tells of no files: without the span."""
    taken = WorkspaceHistory(run).snapshots
    found: dict[str, FileChange] = {}
    for before, after in pairwise(taken):
        for path, item in after.tree.items():
            known = before.tree.get(path)
            if known is None or known.entry.digest != item.entry.digest:
                found[path] = FileChange(after.begun_ns, "written", HERE + path)
    return found


def _of_messages(run: Run) -> Iterator[Artifact]:
    seen: set[str] = set()
    for step in run.calls:
        messages = run.messages(step)
        said: Sequence[tuple[str, Any]] = [
            *(("input", one) for one in messages.input),
            *(("output", one) for one in messages.output),
        ]
        for where, message in said:
            for blob in _blobs(message.parts):
                if blob.content in seen:
                    continue
                seen.add(blob.content)
                yield _of_blob(blob, where, step.number, step.span.span_id, step.span.started_ns)


def _blobs(parts: Iterable[Any]) -> Iterator[Blob]:
    for part in parts:
        if isinstance(part, Blob):
            yield part
        elif isinstance(part, ToolCallResponse) and isinstance(part.response, list):
            yield from _in_result(cast("list[Any]", part.response))


def _in_result(blocks: list[Any]) -> Iterator[Blob]:
    """Media in the result of a tool, which stands in a message as the provider has it."""
    for block in blocks:
        source = cast("dict[str, Any]", block).get("source") if isinstance(block, dict) else None
        if isinstance(source, dict):
            said = cast("dict[str, Any]", source)
            if said.get("type") == "base64" and isinstance(said.get("data"), str):
                media_type = str(said.get("media_type", ""))
                yield Blob(mime_type=media_type, modality=modality_of(media_type), content=said["data"])


def _of_blob(blob: Blob, where: str, step: int, span_id: str, time_ns: int) -> Artifact:
    media_type = blob.mime_type or ""
    name = f"{where} {blob.modality} of step {step}"
    try:
        data = base64.b64decode(blob.content, validate=True)
    except (binascii.Error, ValueError):
        why = "it is not the base64 that it says to be"
        return Artifact(name, "message", media_type, 0, "", span_id, step, time_ns, why)
    digest = digest_of(data).hex()
    return Artifact(
        name, "message", media_type, len(data), digest, span_id, step, time_ns, "", lambda: data
    )
