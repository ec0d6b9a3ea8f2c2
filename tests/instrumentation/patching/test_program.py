"""What a program that fails says of itself under playhead."""

import sys
import traceback
from types import TracebackType

import msgspec
import pytest

from playhead_core.tape.frames import decoded
from playhead_instrumentation.patching import program


def test_a_traceback_has_no_frames_of_any_of_our_rooms(monkeypatch: pytest.MonkeyPatch):
    """An interrupt may come while a fact is appended, in code of the exporter."""
    said: list[TracebackType | None] = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, error, trace: said.append(trace))
    with pytest.raises(msgspec.DecodeError) as caught:
        decoded(b"")
    names = [one.name for one in traceback.extract_tb(caught.value.__traceback__)]
    assert names == ["test_a_traceback_has_no_frames_of_any_of_our_rooms", "decoded"]
    program._report(caught.value)
    [trace] = said
    assert [one.name for one in traceback.extract_tb(trace)] == names[:1]
