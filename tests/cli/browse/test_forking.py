"""Edits made in the form become words of ``playhead fork``, and mean the same there."""

from __future__ import annotations

from typing import Any

import pytest

from playhead_cli.browse.forms import edit_words
from playhead_core.errors import UsageError
from playhead_core.rerun.edits import applied
from playhead_replay.forks.edits_in_words import REQUEST, parse_edit

OLD: dict[str, Any] = {"model": "m", "messages": [{"content": "hi"}], "n": 1, "a.b": True}


@pytest.mark.parametrize(
    "new",
    [
        {**OLD, "model": "other"},
        {**OLD, "messages": [{"content": "@file.json"}], "n": None},
        {**OLD, "messages": [{"content": "hi"}, {"content": 'a "b" = \x1b[2J \u202e\n'}]},
        {**OLD, "a.b": {"c": [1, 2]}, "temperature": 0.5},
        {"model": "m"},
    ],
)
def test_edits_in_words_mean_what_was_edited(new: Any):
    words = edit_words(OLD, new)
    assert words[::2] == ["--edit"] * (len(words) // 2)
    edits = [parse_edit(word) for word in words[1::2]]
    assert {root for root, _ in edits} == {REQUEST}
    assert applied(OLD, [edit for _, edit in edits]) == new
    assert "".join(words).isprintable(), "nothing hidden stands in the prompt"


@pytest.mark.parametrize("name", ["a=b", "a\u202eb"])
def test_what_cannot_be_said_in_words_is_refused(name: str):
    with pytest.raises(UsageError, match="cannot be written as an edit"):
        edit_words({}, {name: 1})
