"""Rows of pydantic models: detects unchanged models without packing them again."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Final

import msgspec
import ormsgpack

from playhead_checkpoint.tree.encoding import STRICT, holds_bytes
from playhead_checkpoint.tree.types import Types

_FIELDS: Final = attrgetter("__dict__")
_EXTRA: Final = attrgetter("__pydantic_extra__")
_SET: Final = attrgetter("__pydantic_fields_set__")
_PRIVATE: Final = attrgetter("__pydantic_private__")


class ModelRow:
    """The content of consecutive models when they were packed.

    Their fields are compared as they are packed, in C and all at once: values that are equal in Python
    may be of other types. That takes a fifth of the time in which each is packed by its type.
    """

    def __init__(
        self, values: list[Any], kinds: list[type[Any]], names: dict[type[Any], str], fields: bytes
    ) -> None:
        self._kinds = kinds
        self._names = names
        self._fields = fields
        self._set_fields = [*map(frozenset, map(_SET, values))]
        self._private = [None] * len(kinds)

    @staticmethod
    def of(values: list[Any], types: Types) -> ModelRow | None:
        """Return a row, or None unless all values are models with plain fields without bytes."""
        kinds = [*map(type, values)]
        names = {kind: types.model_name(kind) for kind in set(kinds)}
        if not all(names.values()) or any(one is not None for one in map(_PRIVATE, values)):
            return None
        fields = _packed(values)
        if fields is None or holds_bytes(fields):
            return None
        return ModelRow(values, kinds, names, fields)

    def same(self, values: list[Any], types: Types) -> bool:
        """Whether ``values`` are unchanged, so that they would be packed to the same bytes."""
        return (
            [*map(type, values)] == self._kinds
            and [*map(_SET, values)] == self._set_fields
            and [*map(_PRIVATE, values)] == self._private
            and all(types.model_name(kind) == name for kind, name in self._names.items())
            and _packed(values) == self._fields
        )


def _packed(values: list[Any]) -> bytes | None:
    try:
        return ormsgpack.packb([[*map(_FIELDS, values)], [*map(_EXTRA, values)]], None, STRICT)
    except TypeError:  # other values than those of JSON
        return None


class SeenModels(msgspec.Struct):
    """Remembers whether consecutive entries are models. The check begins at the second sight."""

    row: ModelRow | None = None
    times: int = 0

    def see(self, values: list[Any], types: Types) -> None:
        """Note that the entries were packed and found unchanged."""
        self.times += 1
        if self.times == 2:
            self.row = ModelRow.of(values, types)
