"""Volatile values: what clocks and entropy give a program, so that it differs in every run.

A replay of a tape without clocks and entropy sends the same requests as the recorded run, with other ids
and instants in them. This package holds what can be computed about that outside of the process: which
*form* a text has, where two requests differ (`compare`, with `Evidence`), and whether they are equal up
to
given *pairs* of a recorded value and the current one (`verify`). Only the replaying process knows which
values were handed out (`playhead_instrumentation.replayer.volatile`).

Instants and durations have a rule of their own, because they are not one to one: two reads of a real
clock may be equal where those of a virtual clock differ, and vice versa. So each is judged alone: the
current one must have been handed out, the recorded one must lie within the time of the recording, and
both must be written in the same layout.

All code here reads untrusted text: it takes time that is linear in the length of the texts, refuses
input that is nested too deeply, and bounds what it keeps.
"""

from playhead_core.normalize.comparison import (
    ComparedRequest,
    Counterpart,
    Evidence,
    Pair,
    Unlike,
    compare,
    compared_answer,
)
from playhead_core.normalize.forms import Form, form_of
from playhead_core.normalize.pairs import Bijection, pairs_of, text_of, verify

__all__ = [
    "Bijection",
    "ComparedRequest",
    "Counterpart",
    "Evidence",
    "Form",
    "Pair",
    "Unlike",
    "compare",
    "compared_answer",
    "form_of",
    "pairs_of",
    "text_of",
    "verify",
]
