"""Suppresses output that the recorded run has already printed."""

from __future__ import annotations

from collections.abc import Callable

from playhead_core.tape.protocols import Tape
from playhead_semconv import attributes as a
from playhead_semconv import events as e

STREAMS = ("stdout", "stderr")


class Printed:
    """The recorded output of each stream that the program has not printed again yet."""

    def __init__(self, tape: Tape, scrub: Callable[[str], str]) -> None:
        """``scrub``: removes credentials from a text, as was done for the tape."""
        self._scrub = scrub
        self._left: dict[str, bytes] = {}
        pieces: dict[str, list[bytes]] = {}
        for fact in tape.facts():
            if fact.name == e.PLAYHEAD_EFFECT and fact.body is not None:
                kind = str(fact.attributes.get(a.PLAYHEAD_EFFECT_KIND))
                pieces.setdefault(kind, []).append(fact.body.inline or b"")
        for name in STREAMS:
            self._left[name] = b"".join(pieces.get(name, ()))

    def new(self, stream: str, text: str, encoding: str) -> str:
        """The part of ``text`` that is not on the tape and is to be printed."""
        left = self._left[stream]
        if not left:
            return text
        data = self._scrub(text).encode(encoding, "backslashreplace")
        if left.startswith(data):
            self._left[stream] = left[len(data) :]
            return ""
        self._left[stream] = b""
        if data.startswith(left):
            known = left.decode(encoding, "replace")
            return text[len(known) :] if text.startswith(known) else text
        return text

    def forget(self) -> None:
        """Print everything from now on."""
        for name in STREAMS:
            self._left[name] = b""
