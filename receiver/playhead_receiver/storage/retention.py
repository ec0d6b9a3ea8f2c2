"""Retention: parses policies, decides which runs have expired, and has `Retention.delete` delete them.

``History`` is the policy for what services do outside of requests.
"""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from playhead_core.errors import ConfigurationError, UsageError
from playhead_core.integrity.tombstones import Why
from playhead_receiver.storage.api.retention import FLAGGED, HELD, TEST, Deleted, History, Retention
from playhead_receiver.storage.api.store import OF_ONE_RUN, Store, needed
from playhead_receiver.storage.values.run_summaries import Query, RunSummary

log = logging.getLogger(__name__)

AT_ONCE = 64
"""Runs, or checkpoints without a run, deleted per transaction."""
STRAY_S = 3600
"""A younger checkpoint without a run may belong to spans that have yet to arrive."""

_POLICY = "success=7d failure=30d flagged=90d test=1d agent:NAME=1d share=0.1 budget=10G, or off"
_HISTORY = "1h 64MiB: a time and a size; or off"
EVERYTHING = 1 << 62

DAY_S = 86_400.0
FOREVER_S = 1e12
"""``forever`` in seconds: some 30,000 years."""

RANDOM_BITS = 56
"""Number of random bits at the end of a trace id (W3C Trace Context)."""

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": DAY_S, "w": 7 * DAY_S}
_SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def duration_s(text: str) -> float:
    """Parse ``90d``, ``12h``, ``30m``, ``10s``, ``2w``, ``forever`` to seconds. `ConfigurationError`."""
    if text.strip() == "forever":
        return FOREVER_S
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", text.strip())
    if found is None:
        raise ConfigurationError(f"{text!r} is not a duration", hint="90d, 12h, 30m, 10s or forever")
    return float(found[1]) * _UNITS[found[2]]


def size_of(text: str) -> int:
    """Parse ``10G``, ``500M``, ``64K`` or a plain number to bytes. `ConfigurationError`."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)i?B?", text.strip())
    if found is None:
        raise ConfigurationError(f"{text!r} is not a size", hint="10G, 500M or 64K")
    return int(float(found[1]) * _SIZES[found[2]])


def of_share(trace_id: bytes, share: float) -> bool:
    """Whether a trace belongs to ``share`` (0 to 1) of all traces. A larger share contains smaller ones.

    >>> of_share(bytes(16), 1.0), of_share(bytes(16), 0.9), of_share(b"\\xff" * 16, 0.1)
    (True, False, True)
    """
    random = int.from_bytes(trace_id[-RANDOM_BITS // 8 :], "big")
    return random >= round((1 - share) * (1 << RANDOM_BITS))


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """How long runs are kept, in seconds since their end, or since their last arrival if that was later.

    Runs that are still running, and held runs, are never deleted.
    """

    success_s: float = 7 * DAY_S
    failure_s: float = 30 * DAY_S
    """For runs that failed, were interrupted or succeeded partly."""
    flagged_s: float = 90 * DAY_S
    """Minimum for flagged runs, whatever the other fields say."""
    test_s: float = DAY_S
    """For runs that are marked as a test, and for successes outside of ``success_share``."""
    agents_s: Mapping[str, float] = {}
    """By agent; replaces ``success_s`` and ``failure_s``."""
    success_share: float = 1.0
    """Share of the successful runs that is kept for ``success_s``; their trace ids decide which."""
    budget_bytes: int | None = None
    """Of runs and checkpoints. Above this size the oldest are deleted, flagged runs last."""

    def kept_s(self, run: RunSummary, marks: set[str]) -> float:
        """How long a run is kept after its end."""
        if run.agent in self.agents_s:
            kept = self.agents_s[run.agent]
        elif run.status != "success":
            kept = self.failure_s
        elif of_share(bytes.fromhex(run.trace_id), self.success_share):
            kept = self.success_s
        else:
            kept = self.test_s
        if TEST in marks:
            kept = self.test_s
        return max(kept, self.flagged_s) if FLAGGED in marks else kept

    def shortest_s(self, marks: Mapping[bytes, set[str]]) -> float:
        """The shortest time that `kept_s` gives to any run. ``marks``: of all runs that have any."""
        shortest = min(self.success_s, self.failure_s, *self.agents_s.values())
        of_tests = self.success_share < 1 or any(TEST in own for own in marks.values())
        return min(shortest, self.test_s) if of_tests else shortest


class Outlook(msgspec.Struct, frozen=True):
    """What a policy deletes next."""

    looked_ns: int
    run: str = ""
    """Name of the run that expires first; empty if none expires."""
    expires_ns: int = 0


KEEP_ALL = Policy(
    success_s=FOREVER_S, failure_s=FOREVER_S, flagged_s=FOREVER_S, test_s=FOREVER_S, agents_s={}
)
"""The policy that deletes nothing."""


def policy_of(text: str) -> Policy | None:
    """Parse a policy, ``success=7d failure=30d agent:refund=1d share=0.1 budget=10G``; None for ``off``.

    Quote a name with spaces: ``'agent:order desk=1d'``. Omitted words have the defaults of `Policy`.
    `ConfigurationError` if the text is malformed.
    """
    if text.strip() == "off":
        return None
    try:
        words = shlex.split(text)
    except ValueError as problem:
        raise ConfigurationError(f"retention {text!r}: {problem}", hint=_POLICY) from None
    fields: dict[str, Any] = {}
    agents: dict[str, float] = {}
    names: set[str] = set()
    for word in words:
        name, _, value = word.rpartition("=")
        if name in names:
            raise ConfigurationError(f"retention: {name} is given twice")
        names.add(name)
        try:
            if name in ("success", "failure", "flagged", "test"):
                fields[f"{name}_s"] = duration_s(value)
            elif name.startswith("agent:") and name != "agent:":
                agents[name.removeprefix("agent:")] = duration_s(value)
            elif name == "budget":
                fields["budget_bytes"] = size_of(value)
            elif name == "share":
                fields["success_share"] = _share_of(value)
            else:
                raise ConfigurationError("unknown word", hint=_POLICY)
        except ConfigurationError as problem:
            raise ConfigurationError(f"retention {word}: {problem.what}", hint=problem.hint) from None
    return Policy(agents_s=agents, **fields)


def _share_of(text: str) -> float:
    if not re.fullmatch(r"0(\.\d+)?|1(\.0+)?", text):
        raise ConfigurationError(f"{text!r} is not a share", hint="a number from 0 to 1: 0.1")
    return float(text)


def expired(
    runs: Iterable[RunSummary], marks: Mapping[bytes, set[str]], policy: Policy, now_ns: int
) -> list[RunSummary]:
    """The expired ones of ``runs``, oldest first."""
    found: list[RunSummary] = []
    for run in runs:
        expires_ns = _expires_ns(run, marks, policy)
        if expires_ns is not None and now_ns > expires_ns:
            found.append(run)
    return sorted(found, key=lambda run: run.started_ns)


def outlook(
    runs: Iterable[RunSummary], marks: Mapping[bytes, set[str]], policy: Policy, now_ns: int
) -> Outlook:
    """Which of the unexpired ``runs`` expires first."""
    forever_ns = now_ns + FOREVER_S * 1e9 / 2
    over = ((_expires_ns(run, marks, policy), run.name) for run in runs)
    ahead = [(ns, name) for ns, name in over if ns is not None and now_ns <= ns < forever_ns]
    expires_ns, name = min(ahead, default=(0, ""))
    return Outlook(now_ns, name, expires_ns)


def first_to_expire(
    store: Store, marks: Mapping[bytes, set[str]], policy: Policy, now_ns: int
) -> list[RunSummary]:
    """All runs that have expired, and the one that expires next, possibly with some others.

    A receiver with many young runs does not have to read them all.
    """
    found = list(store.runs(Query(mode=None, limit=1 << 60, started_from_ns=now_ns)))  # by wrong clocks
    shortest_ns = round(policy.shortest_s(marks) * 1e9)
    next_ns: int | None = None
    past = Query(mode=None, limit=1 << 60, started_before_ns=now_ns, ascending=True)
    for run in store.runs(past):
        earliest_ns = run.started_ns + shortest_ns
        if next_ns is not None and earliest_ns > max(now_ns, next_ns):
            break  # neither this one nor any that started later
        found.append(run)
        expires_ns = _expires_ns(run, marks, policy)
        if expires_ns is not None and expires_ns >= now_ns:
            next_ns = expires_ns if next_ns is None else min(next_ns, expires_ns)
    return found


def _expires_ns(run: RunSummary, marks: Mapping[bytes, set[str]], policy: Policy) -> int | None:
    """When a run expires; None if it is still running or held."""
    own = marks.get(bytes.fromhex(run.trace_id), set())
    if run.ended_ns is None or HELD in own:
        return None
    return max(run.ended_ns, run.arrived_ns) + round(policy.kept_s(run, own) * 1e9)


def above_budget(store: Retention, policy: Policy) -> int:
    """How many bytes runs and checkpoints exceed their budget by; 0 if there is no budget."""
    if policy.budget_bytes is None:
        return 0
    left = policy.budget_bytes - store.checkpoint_bytes()
    return 0 if store.size_bytes() <= left else max(0, store.used_bytes() - left)


def apply(
    store: Retention,
    policy: Policy,
    now_ns: int,
    note: Callable[[str], None] = lambda _: None,
    by: str = "",
    ahead: Callable[[Outlook], None] = lambda _: None,
) -> Deleted:
    """Delete expired runs, then what is oldest above the budget, then stray blobs.

    The latter are runs with their checkpoints, and checkpoints that belong to no run. ``note`` is called
    with the trace id of each run before its deletion. ``by``: who deletes, for the tombstones.
    ``ahead`` is called with what expires next.
    """
    marks = store.marks()
    runs = first_to_expire(store, marks, policy, now_ns)
    ahead(outlook(runs, marks, policy, now_ns))
    done = delete_runs(store, expired(runs, marks, policy, now_ns), note, by)
    if above_budget(store, policy):
        runs = list(store.runs(Query(mode=None, limit=1 << 60)))
        left = [run for run in runs if run.ended_ns is not None]
        left = [run for run in left if HELD not in marks.get(bytes.fromhex(run.trace_id), set())]
        flagged = {run.trace_id for run in left if FLAGGED in marks.get(bytes.fromhex(run.trace_id), ())}
        left.sort(key=lambda run: (run.trace_id in flagged, run.started_ns))
        strays_ns = now_ns - round(STRAY_S * 1e9)
        while above_budget(store, policy):
            first = left[0] if left and left[0].trace_id not in flagged else None
            before_ns = strays_ns if first is None else min(first.started_ns, strays_ns)
            if strays := store.delete_strays(before_ns, AT_ONCE):
                done = _sum(done, Deleted(checkpoints=strays))
                continue
            if not left:
                break
            count = max(1, len(left) // 50)
            done = _sum(done, delete_runs(store, left[:count], note, by))
            del left[:count]
    return _sum(done, store.sweep())


def named_to_go(store: Store, names: Sequence[str]) -> list[RunSummary]:
    """The runs with these names, which a user wants to delete, each once.

    `RunUnknown`, `RunAmbiguous`; `UsageError` if one is held or still running.
    """
    marks, found = needed(store, Retention).marks(), dict[str, RunSummary]()
    for name in names:
        run = store.resolve(name)
        if HELD in marks.get(bytes.fromhex(run.trace_id), ()):
            raise UsageError(
                f"{run.name} is held",
                hint=f"remove the mark first: playhead gc --unmark {run.name} held",
            )
        if run.status == "running":
            raise UsageError(f"{run.name} is still running", hint="delete it when it has ended")
        found[run.trace_id] = run
    return list(found.values())


def delete_runs(
    store: Retention,
    runs: Sequence[RunSummary],
    note: Callable[[str], None] = lambda _: None,
    by: str = "",
    why: Why = Why.DELETED,
) -> Deleted:
    """Delete runs in portions. ``note`` and ``by``: as in `apply`."""
    done = Deleted()
    for at in range(0, len(runs), AT_ONCE):
        some = runs[at : at + AT_ONCE]
        for run in some:
            note(run.trace_id)
        ids = [bytes.fromhex(run.trace_id) for run in some]
        try:
            done = _sum(done, store.delete(ids, by, why))
        except OF_ONE_RUN:
            for id in ids:
                try:
                    done = _sum(done, store.delete([id], by, why))
                except OF_ONE_RUN as problem:
                    log.error("run %s cannot be deleted: %r", id.hex(), problem)
    return done


def names_of_runs(store: Store) -> set[str]:
    """The names of all runs of all modes."""
    return {run.name for run in store.runs(Query(mode=None, limit=1 << 60))}


def _sum(one: Deleted, other: Deleted) -> Deleted:
    return Deleted(
        one.runs + other.runs,
        one.spans + other.spans,
        one.facts + other.facts,
        one.blobs + other.blobs,
        one.checkpoints + other.checkpoints,
        one.wiped and other.wiped,
    )


def history_of(text: str) -> History | None:
    """Parse ``1h 64MiB``: a time, a size, or both; None for ``off`` and ``0``, which keep everything.

    `ConfigurationError` if the text is malformed.
    """
    words = text.split()
    if words in (["off"], ["0"]):
        return None
    time_s, size_bytes = FOREVER_S, EVERYTHING
    kinds: set[bool] = set()
    for word in words:
        is_time = word == "forever" or word[-1] in "smhdw"
        if is_time in kinds:
            raise ConfigurationError(f"process-history {text!r}: {word} is one too many", hint=_HISTORY)
        kinds.add(is_time)
        try:
            if is_time:
                time_s = duration_s(word)
            else:
                size_bytes = size_of(word)
        except ConfigurationError as problem:
            raise ConfigurationError(f"process-history {word}: {problem.what}", hint=_HISTORY) from None
    if not kinds:
        raise ConfigurationError("process-history is empty", hint=_HISTORY)
    return History(time_s, size_bytes)
