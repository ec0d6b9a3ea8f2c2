"""Compares two states. Nodes that both share are never read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from playhead_checkpoint.tree import nodes
from playhead_checkpoint.tree.nodes import DICT, Ref
from playhead_checkpoint.tree.reading import Load, Nodes, Reader
from playhead_checkpoint.tree.stored_nodes import NodeCache
from playhead_checkpoint.tree.types import Types

MOST_COMPARED: Final = 1 << 20
"""Largest product of lengths for which lists are aligned; larger ones are compared by position."""

Path: TypeAlias = tuple[Any, ...]
_Token: TypeAlias = Ref | bytes
"""A node that was not opened, or a packed entry."""


class StateChange(NamedTuple):
    """One difference.

    ``path``: keys and positions from the state to the value, in the second state (in the first for a
    removed value).

    ``before`` and ``after`` are the values, None where there is none.
    """

    path: Path
    kind: Literal["added", "removed", "changed"]
    before: Any
    after: Any


class _Place(NamedTuple):
    """The paths of two values, one in each state."""

    before: Path = ()
    after: Path = ()

    def below(self, one: Any, other: Any) -> _Place:
        return _Place((*self.before, one), (*self.after, other))


_TOP: Final = _Place()


class _Typed(NamedTuple):
    name: str
    parts: bytes


class StateComparison:
    """Compares two packed values. The order of keys in a dict does not matter."""

    def __init__(self, load: Load, types: Types, cache: NodeCache | None = None) -> None:
        self._cache = NodeCache() if cache is None else cache
        self._load = load
        self._types = types
        self._nodes = Nodes(load, self._cache)

    def changes(self, before: bytes, after: bytes, at: _Place = _TOP) -> Iterator[StateChange]:
        """Yield the differences. `CorruptTape` if a needed node is missing or damaged."""
        if before == after:
            return
        if len(at.after) > nodes.MOST_DEPTH:
            raise nodes.damaged(f"nested deeper than {nodes.MOST_DEPTH} levels")
        match _opened(before), _opened(after):
            case _Typed() as one, _Typed() as other if one.name == other.name and _has_names(one, other):
                yield from self.changes(one.parts, other.parts, at)
            case (Ref(kind=nodes.LIST) | list()) as one, (Ref(kind=nodes.LIST) | list()) as other:
                yield from self._of_lists(_tokens(one), _tokens(other), at)
            case (Ref(kind=nodes.DICT) | dict()) as one, (Ref(kind=nodes.DICT) | dict()) as other:
                yield from self._of_dicts(one, other, at)
            case _:
                yield StateChange(at.after, "changed", self._value(before), self._value(after))

    def _of_dicts(
        self, before: Ref | dict[str, bytes], after: Ref | dict[str, bytes], at: _Place
    ) -> Iterator[StateChange]:
        if isinstance(before, Ref) and isinstance(after, Ref):
            one, other = self._unshared([before], [after])
            earlier, later = self._entries(one), self._entries(other)
        else:
            earlier = self._entries([before]) if isinstance(before, Ref) else before
            later = self._entries([after]) if isinstance(after, Ref) else after
        for key, value in earlier.items():
            if key not in later:
                yield StateChange((*at.before, key), "removed", self._value(value), None)
            else:
                yield from self.changes(value, later[key], at.below(key, key))
        for key, value in later.items():
            if key not in earlier:
                yield StateChange((*at.after, key), "added", None, self._value(value))

    def _entries(self, tokens: Sequence[_Token]) -> dict[str, bytes]:
        """Return keys and packed values of those nodes of a dict that only one state has."""
        found: dict[str, bytes] = {}
        for ref in self._leaves([token for token in tokens if isinstance(token, Ref)]):
            found.update(_raw_dict(self._nodes[ref].payload))
        return found

    def _of_lists(
        self, before: Sequence[_Token], after: Sequence[_Token], at: _Place
    ) -> Iterator[StateChange]:
        one, other = self._opened_unshared(before, after)
        at_one, at_other = 0, 0
        for same, earlier, later in _aligned(one, other):
            if same:
                at_one, at_other = at_one + _count(earlier), at_other + _count(later)
                continue
            old, new = self._items(earlier), self._items(later)
            for step, (was, now) in enumerate(zip(old, new, strict=False)):
                yield from self.changes(was, now, at.below(at_one + step, at_other + step))
            both = min(len(old), len(new))
            for step, was in enumerate(old[both:], both):
                yield StateChange((*at.before, at_one + step), "removed", self._value(was), None)
            for step, now in enumerate(new[both:], both):
                yield StateChange((*at.after, at_other + step), "added", None, self._value(now))
            at_one, at_other = at_one + len(old), at_other + len(new)

    def _opened_unshared(
        self, before: Sequence[_Token], after: Sequence[_Token]
    ) -> tuple[list[_Token], list[_Token]]:
        """Return two lists as tokens: shared nodes stay closed, other nodes become their entries."""
        one, other = self._unshared(before, after)
        both = set(one) & set(other)

        def opened(tokens: list[_Token]) -> list[_Token]:
            return [part for one in tokens for part in ([one] if one in both else self._items([one]))]

        return opened(one), opened(other)

    def _unshared(
        self, before: Sequence[_Token], after: Sequence[_Token]
    ) -> tuple[list[_Token], list[_Token]]:
        """Open two trees from above: shared nodes stay closed, all others are opened down to leaves.

        Shared nodes of a dict are left out.
        """
        one, other = list(before), list(after)
        levels = [token.level for token in (*one, *other) if isinstance(token, Ref)]
        for level in range(max(levels, default=-1), -1, -1):
            both = set(one) & set(other)
            ahead = [
                token
                for token in (*one, *other)
                if isinstance(token, Ref) and token.level == level and token not in both
            ]
            if any(ref.kind == DICT for ref in ahead):
                one, other = ([token for token in side if token not in both] for side in (one, other))
            self._nodes.want(ahead)
            if level:
                opened: dict[_Token, Sequence[_Token]] = {ref: self._nodes[ref].below for ref in ahead}
                one, other = (
                    [low for token in side for low in opened.get(token, [token])]
                    for side in (one, other)
                )
        return one, other

    def _leaves(self, refs: Sequence[Ref]) -> list[Ref]:
        found: list[Ref] = []
        ahead = list(refs)
        while ahead:
            self._nodes.want(ahead)
            if not any(ref.level for ref in ahead):
                return ahead
            ahead = [low for ref in ahead for low in (self._nodes[ref].below if ref.level else [ref])]
        return found

    def _items(self, tokens: Sequence[_Token]) -> list[bytes]:
        """Return the packed entries of the tokens of a list."""
        found: list[bytes] = []
        for token in tokens:
            if isinstance(token, Ref):
                for ref in self._leaves([token]):
                    found += _raw_list(self._nodes[ref].payload)
            else:
                found.append(token)
        return found

    def _value(self, data: bytes) -> Any:
        return Reader(self._load, self._types, self._cache).value(data)


def _aligned(
    one: Sequence[_Token], other: Sequence[_Token]
) -> Iterator[tuple[bool, Sequence[_Token], Sequence[_Token]]]:
    """Yield ranges of two lists, in order, and whether they are equal."""
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    end = 0
    while end < min(len(one), len(other)) - start and one[-1 - end] == other[-1 - end]:
        end += 1
    yield True, one[:start], other[:start]
    old, new = one[start : len(one) - end], other[start : len(other) - end]
    if len(old) * len(new) > MOST_COMPARED:
        yield False, old, new
    else:
        matcher = SequenceMatcher(None, old, new, autojunk=False)
        for word, left, to_left, right, to_right in matcher.get_opcodes():
            yield word == "equal", old[left:to_left], new[right:to_right]
    yield True, one[len(one) - end :], other[len(other) - end :]


def _count(tokens: Sequence[_Token]) -> int:
    return sum(token.length if isinstance(token, Ref) else 1 for token in tokens)


def _has_names(one: _Typed, other: _Typed) -> bool:
    """Whether the parts of two typed values have names or positions that a program uses."""
    return one.name == "tuple" or all(
        isinstance(parts, dict) or (isinstance(parts, Ref) and parts.kind == DICT)
        for parts in (_opened(one.parts), _opened(other.parts))
    )


_RAW_LIST: Final = msgspec.msgpack.Decoder(list[msgspec.Raw])
_RAW_DICT: Final = msgspec.msgpack.Decoder(dict[str, msgspec.Raw])
_EXTENSION: Final = msgspec.msgpack.Decoder(msgspec.msgpack.Ext)


def _decoded(decoder: msgspec.msgpack.Decoder[Any], data: bytes | memoryview) -> Any:
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as problem:
        raise nodes.damaged(str(problem)) from None


def _raw_list(data: bytes | memoryview) -> list[bytes]:
    return [bytes(entry) for entry in _decoded(_RAW_LIST, data)]


def _raw_dict(data: bytes | memoryview) -> dict[str, bytes]:
    return {key: bytes(entry) for key, entry in _decoded(_RAW_DICT, data).items()}


def _tokens(one: Ref | list[_Token]) -> list[_Token]:
    return [one] if isinstance(one, Ref) else one


def _opened(data: bytes) -> Ref | _Typed | list[_Token] | dict[str, bytes] | None:
    """Unpack one level of a value; None for a scalar."""
    first = data[0]
    if 0x90 <= first <= 0x9F or first in (0xDC, 0xDD):
        return [*_raw_list(data)]
    if 0x80 <= first <= 0x8F or first in (0xDE, 0xDF):
        return _raw_dict(data)
    if 0xC7 <= first <= 0xC9 or 0xD4 <= first <= 0xD8:
        extension = _decoded(_EXTENSION, data)
        if extension.code == nodes.REF:
            return nodes.unpacked_ref(extension.data)
        if extension.code == nodes.OPEN:
            refs, tail = nodes.opened_list(extension.data)
            return [*refs, *_raw_list(tail)]
        match _raw_list(extension.data):
            case [name, parts] if extension.code == nodes.TYPED:
                return _Typed(str(nodes.unpack(name, None)), parts)
            case _:
                raise nodes.damaged("a typed value without a name")
    return None
