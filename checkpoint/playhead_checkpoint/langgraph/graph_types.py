"""The types in the state of a graph: messages by fields, unregistered types by the serializer."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

from langchain_core import messages
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from playhead_checkpoint.tree.standard_types import TypeShape
from playhead_checkpoint.tree.types import TYPES, Types
from playhead_core.errors import PlayheadError, StateRefused

log = logging.getLogger(__name__)

MESSAGES: Final = ("AI", "Chat", "Function", "Human", "System", "Tool")
_SERIALIZED: Final = "langgraph.serialized"


class Serialized:
    """A value that the serializer stores as a whole."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class GraphTypes(Types):
    """Registered types, messages of LangChain, and all types that the serializer restores.

    A serializer that encrypts gets whole channels: no part of them is stored in the clear or shared.
    """

    def __init__(self, serializer: SerializerProtocol, registered: Types = TYPES) -> None:
        super().__init__()
        self._registered = registered
        self._serializer = serializer
        self.encrypts = isinstance(serializer, EncryptedSerializer)
        for kind in MESSAGES:
            for name in (f"{kind}Message", f"{kind}MessageChunk"):
                self.register(getattr(messages, name), name=f"langchain.{name}")
        self.register(messages.RemoveMessage, name="langchain.RemoveMessage")
        self._whole = TypeShape(_SERIALIZED, self._apart, self._together)
        self._shapes[Serialized] = self._by_name[_SERIALIZED] = self._whole

    def shape_of(self, value: object) -> TypeShape:
        """Return how a value is stored: by its registered type, else by the serializer."""
        return (
            self._shapes.get(type(value))
            or super().shape_of(value)
            or self._registered.shape_of(value)
            or self._whole
        )

    def together(self, name: str, parts: Any) -> Any:
        """Restore a value from its parts. `CorruptTape` if they do not fit the type."""
        known = name in self._by_name
        return super().together(name, parts) if known else self._registered.together(name, parts)

    def _apart(self, value: Any) -> Any:
        whole = value.value if isinstance(value, Serialized) else value
        kind, data = self._serializer.dumps_typed(whole)
        if kind == "pickle":
            raise StateRefused("nothing is stored as a pickle", hint=_HINT)
        if isinstance(self._serializer, JsonPlusSerializer) and not isinstance(value, Serialized):
            restored = self._serializer.loads_typed((kind, data))
            if type(restored) is not type(whole):
                raise StateRefused(
                    f"LangGraph's serializer makes a {type(restored).__name__} of it", hint=_HINT
                )
        return [kind, data]

    def _together(self, parts: Any) -> Any:
        kind, data = parts
        if kind == "pickle":
            raise ValueError("a pickle is not read")
        if kind == "json" and isinstance(self._serializer, JsonPlusSerializer):
            raise ValueError("it makes objects by name, and is not written")
        return self._serializer.loads_typed((kind, data))


_HINT: Final = "register its type with playhead_checkpoint.register, or allow it in the serializer"


@contextmanager
def refusals_reported(what: str) -> Generator[None, None, None]:
    """Name ``what`` in an error that prevents its storage, and log a warning.

    LangGraph stores checkpoints and writes in the background, and drops an error there if a node fails
    meanwhile: then the warning is all that a user sees. It is logged, because `warnings.warn` is lost
    while another thread is within `warnings.catch_warnings`.
    """
    try:
        yield
    except PlayheadError as problem:
        problem.what = f"{what} is not stored: {problem.what}"
        log.warning("%s", problem)
        raise
