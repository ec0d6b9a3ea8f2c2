"""``/v1/runs/RUN/artifacts``: artifacts of a run, and their content by digest."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Path
from starlette.responses import Response

from playhead_receiver.api.context import Reading, RunName
from playhead_receiver.api.models.runs import Artifacts
from playhead_receiver.api.problems import NotFound
from playhead_replay.workspace.artifacts import artifacts_of

router = APIRouter(tags=["runs"])

SAFE_TYPES: Final = frozenset(
    (
        "application/json",
        "application/pdf",
        "audio/mpeg",
        "audio/wav",
        "image/gif",
        "image/jpeg",
        "image/png",
        "image/webp",
        "text/csv",
        "text/plain",
    )
)
"""Media types that are sent as declared. Content of any other type is sent as plain bytes."""

HEADERS: Final = {
    "cache-control": "private, no-store",
    "content-security-policy": "sandbox; default-src 'none'",
    "x-content-type-options": "nosniff",
}
"""Content is untrusted: no browser may run, sniff or cache it."""

Digest = Annotated[str, Path(pattern="^[0-9a-f]{64}$", description="BLAKE3 of the content.")]


@router.get("/v1/runs/{run}/artifacts")
def list_artifacts(context: Reading, run: RunName) -> Artifacts:
    """List the artifacts of a run: named by the program, files it wrote, media in messages."""
    return Artifacts(artifacts=[one.to_json() for one in artifacts_of(context.read(run))])


@router.get(
    "/v1/runs/{run}/artifacts/{digest}",
    responses={200: {"content": {"application/octet-stream": {}}}},
    response_class=Response,
)
def read_artifact(context: Reading, run: RunName, digest: Digest) -> Response:
    """Download an artifact."""
    for one in artifacts_of(context.read(run)):
        if one.digest == digest:
            plain = one.media_type.partition(";")[0].strip().lower()
            media_type = plain if plain in SAFE_TYPES else "application/octet-stream"
            kept_as = {"content-disposition": f'attachment; filename="{digest[:16]}"'}
            return Response(one.read(), media_type=media_type, headers={**HEADERS, **kept_as})
    raise NotFound("no artifact of the run has that digest")
