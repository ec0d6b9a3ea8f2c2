"""Find loops in what a run does: the same actions again and again, with the same results.

An action is a request or a call of a tool, with its arguments and what came back. A request of a model
repeats the whole conversation, so that no two are equal; of such a request counts what it adds: the
calls of the last answer with their results, without ids and without the words of the model. So a loop
has equal arguments and equal results. An agent that polls gets other results, and one that pages asks
with other arguments. Results that report an error or work in progress may repeat longer, because
programs retry and wait. Without the results of equal actions there is no loop: it may be a poll. Equal
actions at the same time are no loop either: a program may ask several models or agents the same.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, Final, cast

import msgspec

from playhead_core.facts import digest_of

REPEATS: Final = 3
"""So many equal rounds are a loop."""
REPEATS_OF_ERRORS: Final = 6
"""The same for rounds in which something failed: programs retry up to five times."""
REPEATS_OF_WAITS: Final = 20
"""The same for rounds whose results say that something is not ready yet."""
LONGEST_PERIOD: Final = 16
"""Actions of a round at most: six calls of tools with the requests of a model between."""
MOST_CONVERSATIONS: Final = 8
"""Conversations of a run that are told apart, the latest ones."""
_REMEMBERED: Final = REPEATS_OF_WAITS * LONGEST_PERIOD

_HISTORIES: Final = ("messages", "input", "contents")
"""Fields of a request of a model that hold the conversation."""
_IDS: Final = frozenset(
    "id tool_call_id call_id tool_use_id toolUseId thoughtSignature request_id timestamp took took_ms"
    " duration_ms elapsed_ms latency_ms".split()
)
"""Fields that differ between equal actions: ids and times."""
_RESULT_FIELDS: Final = ("functionResponse", "toolResult")
_CALL_FIELDS: Final = ("functionCall", "toolUse")
_RESULT_TYPE: Final = re.compile(r"tool_result|tool_call_response|\w*_call_output")
_CALL_TYPE: Final = re.compile(r"tool_use|\w*_call")

LONGEST_STATUS: Final = 1000
"""Longer results are content and no report of an error or of a state."""
_ERRORS: Final = re.compile(
    rb"error|exception|time.?out|timed out|unavailable|rate.?limit|too many requests|refused", re.I
)
_WAITS: Final = re.compile(
    rb"pending|queued|in[ _-]?progress|running|processing|starting|scheduled|not (?:yet )?"
    rb"(?:ready|done|complete|finished)|try again|retry.?after|please wait|still ",
    re.I,
)


class Action(msgspec.Struct):
    """Something that a run did, as far as loops need it."""

    what: Hashable
    """Kind, label and arguments."""
    result: Hashable = None
    """What came back; None: it is not known (yet)."""
    patience: int = REPEATS
    """Equal rounds with this action that are a loop."""
    began: int = 0
    """A time, or a place in an order; so are the others."""
    ended: int = 0
    """When its result was there."""
    within: Hashable = None
    """The agent or conversation that did it."""
    since: int = 0
    """When that began."""

    def repeats(self, earlier: Action) -> bool:
        """Whether it is ``earlier`` again. Its own result may be missing: it is still to come."""
        same = self.result is None or self.result == earlier.result
        if earlier.result is None or not same or self.what != earlier.what:
            return False
        return earlier.ended <= (self.began if self.within == earlier.within else self.since)


class Loop(msgspec.Struct, frozen=True):
    """Equal rounds of actions: the indices of the first and the last action, and the period."""

    first: int
    last: int
    period: int

    @property
    def times(self) -> int:
        """Number of whole rounds."""
        return (self.last - self.first + 1) // self.period


def loops_in(actions: Sequence[Action]) -> Iterator[Loop]:
    """Yield the loops in a sequence of actions, each as long as it is. They do not overlap."""
    equal = [0] * (LONGEST_PERIOD + 1)  # by period: the last actions in a row that repeat
    answered: dict[Hashable, int] = {}
    """Indices of the last actions of each kind that have a result."""
    found: Loop | None = None
    begin = 0
    for last, action in enumerate(actions):
        is_new = last - answered.get(action.what, -LONGEST_PERIOD - 1) > LONGEST_PERIOD
        if action.result is not None:
            answered[action.what] = last
        if is_new:  # as most actions of a long run: nothing to compare
            equal = [0] * (LONGEST_PERIOD + 1)
            if found is not None:
                yield found
                begin, found = last, None
            continue
        for period in range(1, min(LONGEST_PERIOD, last) + 1):
            repeats = action.repeats(actions[last - period])
            equal[period] = equal[period] + 1 if repeats else 0
        if found is not None and equal[found.period]:
            found = Loop(found.first, last, found.period)
            continue
        if found is not None:
            yield found
            begin, found = last, None
        for period in range(1, min(LONGEST_PERIOD, last) + 1):
            first = max(last - equal[period] - period + 1, begin)
            if last - first + 1 < REPEATS * period:
                continue
            rounds = max(one.patience for one in actions[last - period + 1 : last + 1])
            if last - first + 1 >= rounds * period:
                found = Loop(first, last, period)
                break
    if found is not None:
        yield found


def action_of(label: str, arguments: Any, result: Any, *, failed: bool = False) -> Action:
    """Return the action of a call whose result is known; a result of None is not."""
    what = digest_of(_encoded(arguments))
    if result is None:
        return Action((label, what))
    encoded = _encoded(result)
    return Action((label, what), digest_of(encoded), _patience(encoded, failed=failed))


class _Conversation(msgspec.Struct):
    hashes: list[int]
    """Of its messages."""
    since: int


class LoopFinder:
    """Takes the requests of one run in their order, and the results of those that no model gets.

    For one thread; `failed` and `answered` may be called by others, and in a finalizer.
    """

    def __init__(self) -> None:
        self._actions: list[Action] = []
        self._open: dict[Hashable, Action] = {}
        """Actions whose result may still come, by the id of the request."""
        self._conversations: list[_Conversation] = []
        """The latest ones, the last one first."""
        self._now = 0
        """Requests and results so far."""

    def add(self, kind: str, key: str, body: bytes, id: Hashable = None) -> None:
        """Add a request. ``key``: what is requested: method and URL, or the name of a tool."""
        self._now += 1
        items = _items_of(body)
        before, since = self._note_history(list(map(hash, items))) if items else (0, self._now)
        if before:
            added, results = _news(items[before:])
            action = Action((kind, key, digest_of(added)), True, _patience(results))
        else:
            action = self._open[id] = Action((kind, key, digest_of(body)))
        action.began = action.ended = self._now
        action.within = action.since = since
        self._actions.append(action)
        del self._actions[:-_REMEMBERED]
        while len(self._open) > _REMEMBERED:
            self._open.pop(next(iter(self._open)), None)

    def _note_history(self, hashes: list[int]) -> tuple[int, int]:
        """Return how many messages an earlier request of a conversation had, and when that began.

        Without messages before, the conversation is new.
        """
        known, before = _Conversation(hashes, self._now), 0
        for place, one in enumerate(self._conversations):
            size = len(one.hashes)
            if size < len(hashes) and hashes[:size] == one.hashes:
                known, before = self._conversations.pop(place), size
                known.hashes = hashes
                break
        self._conversations = [known, *self._conversations[: MOST_CONVERSATIONS - 1]]
        return before, known.since

    def failed(self, id: Hashable) -> None:
        """Note that a request failed: it may be repeated longer."""
        if action := self._open.get(id):
            action.patience = REPEATS_OF_ERRORS

    def answered(self, id: Hashable, result: Hashable) -> None:
        """Set what came back of a request: a digest, say."""
        if action := self._open.pop(id, None):
            self._now += 1
            action.result, action.ended = result, self._now

    def clear(self) -> None:
        """Forget the requests: a loop counts from here again."""
        self._actions.clear()
        self._open.clear()

    @property
    def is_loop(self) -> bool:
        """Whether the last requests are a loop."""
        last = len(self._actions) - 1
        return any(one.last == last for one in loops_in(self._actions))


def _patience(result: bytes, *, failed: bool = False) -> int:
    if len(result) <= LONGEST_STATUS and _WAITS.search(result):
        return REPEATS_OF_WAITS
    if failed or (len(result) <= LONGEST_STATUS and _ERRORS.search(result)):
        return REPEATS_OF_ERRORS
    return REPEATS


def _items_of(body: bytes) -> list[bytes]:
    """Return the items of a conversation in a request; empty if it has none."""
    try:
        fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        raw = next((fields[name] for name in _HISTORIES if name in fields), None)
        return [] if raw is None else list(map(bytes, msgspec.json.decode(raw, type=list[msgspec.Raw])))
    except (ValueError, RecursionError):
        return []


def _news(items: Iterable[bytes]) -> tuple[bytes, bytes]:
    """Return the calls and results of new items, and the results alone; else the items themselves."""
    calls: list[Any] = []
    results: list[Any] = []
    values: list[Any] = []
    for item in items:
        try:
            value = msgspec.json.decode(item)
            _collect(value, calls, results)
        except (ValueError, RecursionError):
            value = item.decode("utf-8", "replace")
        values.append(value)
    if not calls and not results:
        return _encoded(values), b""
    encoded = _encoded(results)
    return _encoded(calls) + encoded, encoded


def _collect(value: Any, calls: list[Any], results: list[Any]) -> None:
    """Collect the calls of tools and their results in an item of any provider."""
    if isinstance(value, list):
        for one in cast("list[Any]", value):
            _collect(one, calls, results)
    if not isinstance(value, dict):
        return
    fields = cast("dict[str, Any]", value)
    kind = str(fields.get("type", ""))
    if _RESULT_TYPE.fullmatch(kind) or fields.get("role") in ("tool", "function"):
        results.append(fields)
    elif any(name in fields for name in _RESULT_FIELDS):
        results.append(fields)
    elif _CALL_TYPE.fullmatch(kind) or any(name in fields for name in _CALL_FIELDS):
        calls.append(fields)
    elif isinstance(fields.get("tool_calls"), list):
        calls += fields["tool_calls"]
    else:
        for one in fields.values():
            _collect(one, calls, results)


def _encoded(value: Any) -> bytes:
    """Encode a value so that equal ones have equal bytes, without ids and times."""
    try:
        return msgspec.json.encode(_stripped(value), order="sorted", enc_hook=str)
    except (ValueError, TypeError, RecursionError):
        return repr(value).encode("utf-8", "replace")


def _stripped(value: Any) -> Any:
    if isinstance(value, dict):
        fields = cast("dict[Any, Any]", value)
        return {name: _stripped(one) for name, one in fields.items() if name not in _IDS}
    if isinstance(value, list):
        return [_stripped(one) for one in cast("list[Any]", value)]
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return _stripped(msgspec.json.decode(value))
        except (ValueError, RecursionError):
            return value
    return value
