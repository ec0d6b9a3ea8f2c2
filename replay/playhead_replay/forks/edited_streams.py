"""Edits an answer in the events that streamed it: those that do not carry the field keep their bytes.

A field of a whole answer is in a stream in three ways: as it is (``"model": "m"`` in every chunk), in
pieces that make it together (deltas of a text), or as pieces of JSON that make what it is in (arguments
of a function). No table says which, for any provider: each way that fits is tried, and the one counts
whose events make the edited answer. If none does, the caller makes the stream from the edited answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias, cast

from playhead_core.rerun.edits import Step, applied, between, path_of, steps_of
from playhead_core.rerun.plans import Edit
from playhead_core.rerun.rewriting import rewritten

_DATA: Final = re.compile(rb"(?m)^data:[ ]?([^\r\n]*)")
_IDENTITY: Final = ("index", "output_index", "content_index", "summary_index", "item_id")
"""Fields that say which part of the answer an event, or an item in it, belongs to."""
_MOST_WAYS: Final = 32

Change: TypeAlias = dict[tuple[int, tuple[Step, ...]], Any]
"""New values in events: by the number of the event, and the path in it."""


class Stream(NamedTuple):
    """The bytes of a stream, and where its chunks end in them."""

    body: bytes
    ends: Sequence[int]

    @classmethod
    def of(cls, chunks: Iterable[bytes]) -> Stream:
        """Join the chunks of a recorded answer."""
        body, ends = b"", list[int]()
        for chunk in chunks:
            body += chunk
            ends.append(len(body))
        return cls(body, ends)

    def chunks(self) -> list[bytes]:
        """The chunks that are not empty."""
        pieces = [self.body[a:b] for a, b in zip([0, *self.ends], self.ends, strict=False)]
        return [piece for piece in pieces if piece]

    def spliced(self, pieces: Iterable[tuple[int, int, bytes]]) -> Stream:
        """The stream with bytes replaced; a chunk that ended within them now ends after them."""
        body, ends = self.body, list(self.ends)
        for start, end, new in sorted(pieces, reverse=True):
            body = body[:start] + new + body[end:]
            moved = len(new) - (end - start)
            ends = [at if at <= start else max(at, end) + moved for at in ends]
        return Stream(body, ends)


class _Leaf(NamedTuple):
    """A text, number or other single value in an event."""

    event: int
    path: tuple[Step, ...]
    value: Any
    identity: tuple[Any, ...]


def edited_in_place(stream: Stream, old: Any, new: Any, folded: Callable[[bytes], Any]) -> Stream | None:
    """The stream with the fewest events changed that make ``new`` of ``old``; None: no way is known.

    ``folded``: the whole answer that the bytes of a stream make.
    """
    document = old
    for edit in between(old, new):
        if edit.add or edit.remove:
            return None
        wanted = applied(document, [edit])
        changed = _edited_once(stream, document, wanted, steps_of(edit.path), folded)
        if changed is None:
            return None
        stream, document = changed, wanted
    return stream


def _edited_once(
    stream: Stream, old: Any, new: Any, path: list[Step], folded: Callable[[bytes], Any]
) -> Stream | None:
    events = list(_events(stream.body))
    leaves = [leaf for number, (*_, value) in enumerate(events) for leaf in _leaves_of(number, value)]
    for way in islice(_ways(leaves, old, new, path), _MOST_WAYS):
        changed = stream.spliced(_pieces(stream.body, events, way))
        if folded(changed.body) == new:
            return changed
    return None


def _events(body: bytes) -> Iterator[tuple[int, int, Any]]:
    """Where the data of each event begins and ends, and its value."""
    for found in _DATA.finditer(body):
        try:
            yield found.start(1), found.end(1), json.loads(found[1])
        except (ValueError, RecursionError):
            continue


def _pieces(
    body: bytes, events: list[tuple[int, int, Any]], change: Change
) -> Iterator[tuple[int, int, bytes]]:
    """Which bytes to replace: only those that differ, so that chunks stay what they were."""
    edits: dict[int, list[Edit]] = {}
    for (event, path), value in change.items():
        edits.setdefault(event, []).append(Edit(path_of(path), value))
    for event, some in edits.items():
        start, end, value = events[event]
        old = body[start:end]
        text = rewritten(old.decode("utf-8", "surrogateescape"), applied(value, some))
        new = text.encode("utf-8", "surrogateescape")
        head = _same_start(old, new)
        tail = _same_start(old[head:][::-1], new[head:][::-1])
        yield start + head, end - tail, new[head : len(new) - tail]


def _leaves_of(event: int, value: Any) -> Iterator[_Leaf]:
    kind = cast("dict[str, Any]", value).get("type") if isinstance(value, dict) else None
    return _leaves(event, value, (), (kind,))


def _leaves(
    event: int, value: Any, path: tuple[Step, ...], identity: tuple[Any, ...]
) -> Iterator[_Leaf]:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        identity = (*identity, *(repr(fields.get(name)) for name in _IDENTITY))
        for name, inner in fields.items():
            yield from _leaves(event, inner, (*path, name), identity)
    elif isinstance(value, list):
        for number, inner in enumerate(cast("list[Any]", value)):
            yield from _leaves(event, inner, (*path, number), identity)
    else:
        yield _Leaf(event, path, value, identity)


def _ways(leaves: list[_Leaf], old: Any, new: Any, path: list[Step]) -> Iterator[Change]:
    """What may be changed in the events: all that fits, then each part of it alone."""
    before, after = _at(old, path), _at(new, path)
    fits = [one for one in leaves if one.path[-1:] == tuple(path[-1:]) and _is_same(one.value, before)]
    as_it_is: Change = {(one.event, one.path): after for one in fits}
    groups = _groups(leaves)
    in_pieces = [_divided(group, after) for group in groups if _text(group) == before]
    yield as_it_is | _merged(in_pieces)
    for one in in_pieces:
        yield as_it_is | one
    yield from in_pieces
    yield as_it_is
    for length in range(len(path), -1, -1):  # the value is in JSON that comes in pieces
        before, after = _at(old, path[:length]), _at(new, path[:length])
        for group in groups if isinstance(before, (dict, list)) else ():
            if _is_json_of(_text(group), before):
                yield _divided(group, rewritten(_text(group), after))


def _merged(changes: Iterable[Change]) -> Change:
    return {place: value for change in changes for place, value in change.items()}


def _at(document: Any, path: Sequence[Step]) -> Any:
    for step in path:
        document = document[step]
    return document


def _is_same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


def _is_json_of(text: str, value: Any) -> bool:
    if text[:1] not in ("{", "[", " "):
        return False
    try:
        return bool(json.loads(text) == value)
    except (ValueError, RecursionError):
        return False


def _groups(leaves: list[_Leaf]) -> list[list[_Leaf]]:
    """Texts at the same place of several events, which may be pieces of one text."""
    groups: dict[tuple[Any, ...], list[_Leaf]] = {}
    for leaf in leaves:
        if isinstance(leaf.value, str):
            names = tuple(step for step in leaf.path if isinstance(step, str))
            groups.setdefault((names, leaf.identity), []).append(leaf)
    return list(groups.values())


def _text(group: list[_Leaf]) -> str:
    return "".join(leaf.value for leaf in group)


def _same_start(one: str | bytes, other: str | bytes) -> int:
    """How many characters or bytes are the same from the start on."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _divided(group: list[_Leaf], new: Any) -> Change:
    """New pieces that make ``new``: those before and after what is changed stay as they are."""
    if not isinstance(new, str):
        return {}
    old = _text(group)
    head = _same_start(old, new)
    tail = _same_start(old[head:][::-1], new[head:][::-1])
    middle: str | None = new[head : len(new) - tail]
    change: Change = {}
    end = 0
    for leaf in group:
        start, end = end, end + len(leaf.value)
        piece = old[start : min(end, head)]
        if middle is not None and (end > head or leaf is group[-1]):
            piece, middle = piece + middle, None
        piece += old[max(start, len(old) - tail) : end]
        if piece != leaf.value:
            change[leaf.event, leaf.path] = piece
    return change
