"""An edited body keeps the bytes of everything that the edit does not touch."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead_core.rerun.edits import applied
from playhead_core.rerun.plans import Edit
from playhead_core.rerun.rewriting import rewritten

BODY = (
    '{ "z" : 1.0,"a":"\\u00e9\\/x",\n "n": 1e3,'
    ' "m": [ {"role":"user" , "content": "Hi"}, 2 ], "a": "b", "last": 0 }'
)


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (Edit("m[0].content", "Bye"), BODY.replace('"Hi"', '"Bye"')),
        (Edit("z", 2), BODY.replace("1.0", "2")),
        (Edit("n", remove=True), BODY.replace('"n": 1e3, ', "")),
        (Edit("last", remove=True), BODY.replace(', "last": 0', "")),
        (Edit("k", True, add=True), BODY.replace(": 0", ': 0, "k": true')),
        (Edit("m", []), BODY.replace('[ {"role":"user" , "content": "Hi"}, 2 ]', "[]")),
        (Edit("m[0].content", "Hi"), BODY),
    ],
    ids=["nested", "number", "removed", "removed last", "added", "replaced", "the same"],
)
def test_an_edit_changes_only_its_field(edit: Edit, expected: str):
    assert rewritten(BODY, applied(json.loads(BODY), [edit])) == expected


def test_a_removed_name_is_gone_however_often_it_was_there():
    assert "a" not in json.loads(rewritten(BODY, applied(json.loads(BODY), [Edit("a", remove=True)])))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, JSON, st.sampled_from([None, 2]))
def test_the_text_says_the_new_value(old: object, new: object, indent: int | None):
    assert json.loads(rewritten(json.dumps(old, indent=indent), new)) == new
