"""Images, audio and files in messages: inline bytes, references to uploads, URLs."""

from __future__ import annotations

import base64
from urllib.parse import unquote_to_bytes

from playhead_genai.messages import Blob, Uri

_MODALITIES = ("image", "video", "audio")
_AUDIO = {"mp3": "audio/mpeg", "pcm16": "audio/pcm", "g711_ulaw": "audio/basic"}


def modality_of(mime_type: str | None, fallback: str = "document") -> str:
    """Return the conventions' modality for a MIME type."""
    kind = (mime_type or "").partition("/")[0]
    if kind in _MODALITIES:
        return kind
    return "document" if mime_type else fallback


def audio_type(format_name: str | None) -> str | None:
    """Return the MIME type for OpenAI's name of an audio format."""
    return _AUDIO.get(format_name, f"audio/{format_name}") if format_name else None


def located(url: str, modality: str, extras: dict[str, object]) -> Blob | Uri:
    """Return a part for ``url``: `Blob` for a ``data:`` URL (which has no ``extras``), else `Uri`."""
    if not url[:5].lower() == "data:":
        return Uri(modality=modality, uri=url, extras=extras)
    head, _, data = url[5:].partition(",")
    mime_type, *options = head.split(";")
    if "base64" not in (option.strip().lower() for option in options):
        data = base64.b64encode(unquote_to_bytes(data)).decode()
    return Blob(mime_type=mime_type or None, modality=modality_of(mime_type, modality), content=data)
