"""What a run made: as a list, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from playhead_cli.output.styles import ERROR, FAINT
from playhead_cli.output.words import size

if TYPE_CHECKING:
    from playhead_cli.json_output.files import PrintedArtifact
    from playhead_replay.workspace.artifacts import Artifact

SHOWN_DIGITS = 12


def artifact_lines(found: Iterable[Artifact]) -> Iterator[Text]:
    """A line each: digest, size, step, name, type."""
    for one in found:
        step = "" if one.step is None else f"step {one.step}"
        line = Text(f"{one.digest[:SHOWN_DIGITS]:{SHOWN_DIGITS}} {size(one.size_bytes):>9}  {step:<9} ")
        line.append(one.name).append(f"  {one.media_type or one.made}", FAINT)
        if one.why:
            line.append(f"  {one.why}", ERROR)
        yield line


def printed_artifact(one: Artifact) -> PrintedArtifact:
    """An artifact for ``--json``."""
    return {
        "name": one.name,
        "made": one.made,
        "media_type": one.media_type,
        "size_bytes": one.size_bytes,
        "digest": one.digest,
        "span_id": one.span_id,
        "step": one.step,
        "time_ns": one.time_ns,
        "inexact": one.why or None,
    }
