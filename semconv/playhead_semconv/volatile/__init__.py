"""Volatile values: what a clock and entropy give a program, so that no two runs have the same.

A replay of a tape without clocks and entropy asks what the recorded run asked, with other ids and
instants in it. Here is what can be computed of that without the process: which *form* a text has, where
two requests differ (`compare`, asked with `Evidence`), and whether they are equal up to given *pairs* of
a recorded value and the one of now (`verify`). Which values were handed out, the process that replays
knows (`playhead_instrumentation.determinism.volatile`).

Instants and durations have a rule of their own. They are not one to one: two reads of a real clock may
say the same where those of a virtual clock differ, and the other way round. So each stands for itself:
the one of now must have been handed out, the recorded one must be of the time of the recording, and both
must be written alike.

Everything here reads text of strangers: it takes time that is linear in the length of the texts, refuses
what is nested too deep, and bounds what it keeps.
"""

from playhead_semconv.volatile.answers import answer
from playhead_semconv.volatile.comparison import Evidence, Found, Pair, Request, Unlike, compare
from playhead_semconv.volatile.forms import Form, form_of
from playhead_semconv.volatile.pairs import Bijection, pairs_of, text_of, verify

__all__ = [
    "Bijection",
    "Evidence",
    "Form",
    "Found",
    "Pair",
    "Request",
    "Unlike",
    "answer",
    "compare",
    "form_of",
    "pairs_of",
    "text_of",
    "verify",
]
