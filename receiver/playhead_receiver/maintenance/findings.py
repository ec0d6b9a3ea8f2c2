"""Derives failures and loops of runs after their data are stored, and finds running runs that are stuck.

What is found becomes words by which runs are found, and alerts. A run is derived again when it changed,
at intervals that grow with its processor time: while data arrive, the thread rests 19 times as long as
it works. A run that seems to be in a loop (`LiveLoops`) is derived at once. Runs without findings of
this version (`findings.VERSION`) are derived when nothing else is due.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any, Final

import msgspec

from playhead_core.errors import PlayheadError, RunUnknown
from playhead_receiver.alerts.rules import AlertEvent
from playhead_receiver.maintenance.background import RepeatingThread
from playhead_receiver.maintenance.live_loops import LiveLoops
from playhead_receiver.queries.activity import Activity, activity_of
from playhead_receiver.storage import Query, RunSummary
from playhead_receiver.storage.api.maintenance import DerivedFindings, SharedMaintenance
from playhead_receiver.storage.api.store import OF_ONE_RUN, offered
from playhead_receiver.storage.runs.listing import FAILED, RECOVERED, failure_words
from playhead_replay.derived.findings import (
    VERSION,
    Findings,
    failure_word,
    findings_of,
    loop_name,
)
from playhead_replay.failures.codes import CODES
from playhead_replay.run.run import Run

log = logging.getLogger(__name__)

POLL_S: Final = 0.2
RESTS: Final = 19
"""Ratio of rest to processor time while data arrive."""
RESTS_OF_LOOKS: Final = 9
"""The same after looks for loops, which alerts wait for."""
ARRIVING_S: Final = 1.0
"""Seconds after the last change in which more data are expected: intake comes in groups."""
WORK_S: Final = 0.05
"""Seconds of work after which a turn ends."""
TRIES: Final = 3
"""Times that a run is derived at once when it seems to be in a loop: its spans may arrive later."""
LAST_LOOK_S: Final = 3.0
"""Seconds that the receiver stays, at its end, to derive the last runs."""
MOST_WAIT_S: Final = 2.0
"""Seconds by which other runs wait at most for those that seem to be in a loop."""
WATCH_S: Final = 1.0
"""Seconds between looks at the running runs."""
MOST_WATCHED: Final = 500
"""Running runs that are watched, the newest ones."""
MOST_SPANS: Final = 100_000
"""Runs with more spans are not derived: they take too much memory and time."""
LAST_SPANS: Final = 20_000
"""The same at the end of the receiver, which must not take long; the next receiver derives them."""
MOST_DUE: Final = 100_000

_COUNTED: Final = frozenset((kind, code) for kind, codes in CODES.items() for code in codes)
"""Types and codes that the metric has. What programs report may have others."""
STUCK_AFTER_S: Final = 300.0
SILENT_STREAM_S: Final = 60.0


class Patience(msgspec.Struct, frozen=True):
    """How long a running run may make no progress before it is stuck."""

    stuck_s: float = STUCK_AFTER_S
    """In a model call without an answer, a tool, or its own code."""
    stream_s: float = SILENT_STREAM_S
    """In a stream without a chunk."""

    @property
    def read_s(self) -> float:
        """How often what a run does is read while it changes: a tenth of what it may stand still."""
        return min(self.stuck_s, self.stream_s) / 10

    def reason(self, now: Activity, idle_s: float) -> str:
        """Return why a run is stuck that has done the same for ``idle_s``; empty if it is not."""
        if now.what == "person":
            return ""
        if now.what == "stream":
            return "silent_stream" if idle_s >= self.stream_s else ""
        if idle_s < self.stuck_s:
            return ""
        return {"tool": "hung_tool", "model": "no_answer", "request": "no_answer"}.get(
            now.what, "no_progress"
        )


class _Seen(msgspec.Struct, frozen=True):
    """What a running run does."""

    now: Activity | None
    """None if nothing tells."""
    since_s: float
    """Since when this receiver knows (monotonic): clocks of agents may be wrong."""
    arrived_ns: int
    read_s: float
    """When what it does was read (monotonic)."""


class FindingsThread(RepeatingThread):
    """The thread that derives the findings of one store."""

    def __init__(
        self,
        store: DerivedFindings,
        patience: Patience = Patience(),  # noqa: B008, frozen
        notify: Callable[[AlertEvent], None] = lambda _: None,
    ) -> None:
        super().__init__("findings")
        self._store = store
        self._shared = offered(store, SharedMaintenance)
        self._patience = patience
        self._notify = notify
        self._position = store.position()
        self._due: OrderedDict[bytes, float] = OrderedDict()
        """Runs that changed, each with when it may be derived (monotonic)."""
        self._not_before: dict[bytes, float] = {}
        self._looping: set[bytes] = set()
        """Running runs whose last actions are a loop."""
        self._seen: dict[bytes, _Seen] = {}
        """Running runs."""
        self._watch_s = 0.0
        """When to look at them again (monotonic)."""
        self._changed_s = 0.0
        """When runs changed last (monotonic)."""
        self._live = LiveLoops(store)
        self._looked = self._position
        """Position up to which new facts were looked at."""
        self._urgent: dict[bytes, int] = {}
        """Runs that seem to be in a loop, each with how often it may be derived at once."""
        self._look_s = self._work_s = 0.0
        """When to look at new facts again, and when to derive again (monotonic)."""
        self._older = True
        """Whether there may be runs without findings of this version."""
        self._aside: set[bytes] = set()
        self.failures: Counter[tuple[str, str]] = Counter()
        """Found since the start, by type and code."""
        self.loops = 0
        """Found since the start."""
        self.stuck: Counter[str] = Counter()
        """Running runs that are stuck, by reason."""

    def stop(self) -> None:
        """Stop once the findings of all runs are derived, at most `LAST_LOOK_S` later. Idempotent."""
        works = self._thread.is_alive() and not self._stop.is_set()
        super().stop()
        if works:
            with suppress(PlayheadError, OSError):  # the next receiver derives what is left
                self._derive_last(time.monotonic() + LAST_LOOK_S)

    def _derive_last(self, until_s: float) -> None:
        self._note_changes()
        for trace_id in list(self._due):
            if time.monotonic() < until_s:
                self._derive(trace_id)

    def turn(self) -> float:
        """Look at what changed and derive some runs that are due; return the seconds to rest."""
        with nullcontext(True) if self._shared is None else self._shared.exclusive_maintenance() as ours:
            if not ours:
                return POLL_S
            self._note_changes()
            if self._looked < self._position and time.monotonic() >= self._look_s:
                self._look()
            wait_s = 0.0
            if self._looked < self._position and self._due.keys() & self._urgent.keys():
                wait_s = MOST_WAIT_S  # the next look derives these first
            if time.monotonic() < self._work_s + wait_s:
                return POLL_S
            return self._work(arrives=time.monotonic() - self._changed_s < ARRIVING_S)

    def _look(self) -> None:
        """Derive the runs that changed and seem to be in a loop."""
        begin_cpu_s = time.thread_time()
        changed = self._store.changed_tapes(self._looked, self._position)
        self._looked = self._position
        for trace_id in self._live.look(changed):
            if trace_id not in self._looping:  # else its loop is known
                self._urgent[trace_id] = TRIES
                self._due.setdefault(trace_id, 0.0)
        # Without the derivations below: an alert must not wait for those of other runs, and one run is
        # derived at once a few times only.
        self._look_s = time.monotonic() + RESTS_OF_LOOKS * (time.thread_time() - begin_cpu_s)
        for trace_id in self._due.keys() & self._urgent.keys():
            self._derive(trace_id)
            self._urgent[trace_id] -= 1
            if trace_id in self._looping or not self._urgent[trace_id]:
                del self._urgent[trace_id]

    def _work(self, *, arrives: bool) -> float:
        """Derive some runs that are due; return the seconds to rest."""
        begin, begin_cpu_s = time.monotonic(), time.thread_time()
        self._derive_due(begin + WORK_S)
        if begin >= self._watch_s:
            self._watch()
            cost_s = time.thread_time() - begin_cpu_s
            self._watch_s = time.monotonic() + max(WATCH_S, RESTS * cost_s)
        if not self._due and self._older:
            self._derive_older(begin + WORK_S)
        worked_s = time.thread_time() - begin_cpu_s
        if not arrives and (self._older or any(due <= begin for due in self._due.values())):
            return worked_s
        if arrives:
            self._work_s = time.monotonic() + worked_s * RESTS
        return POLL_S

    def _note_changes(self) -> None:
        changed, self._position = self._store.changed_runs(self._position)
        for trace_id in changed:
            self._due.setdefault(trace_id, self._not_before.get(trace_id, 0.0))
        while len(self._due) > MOST_DUE:  # they are found as older ones
            self._due.popitem(last=False)
            self._older = True
        if changed:
            self._changed_s = time.monotonic()

    def _derive_due(self, until_s: float) -> None:
        now_s = time.monotonic()
        for trace_id in [one for one, due in self._due.items() if due <= now_s]:
            self._derive(trace_id)
            if time.monotonic() >= until_s:
                return

    def _derive_older(self, until_s: float) -> None:
        found = [one for one in self._store.underived(VERSION) if one not in self._aside]
        self._older = bool(found)
        for trace_id in found:
            self._derive(trace_id, older=True)
            if time.monotonic() >= until_s:
                return

    def _derive(self, trace_id: bytes, *, older: bool = False) -> None:
        """Derive the findings of a run. ``older``: it is not new, so that there are no alerts."""
        begin_cpu_s = time.thread_time()
        self._due.pop(trace_id, None)
        try:
            run = self._store.resolve(trace_id.hex())
            if run.spans > (LAST_SPANS if self._stop.is_set() else MOST_SPANS):
                self._aside.add(trace_id)
                return
            found = findings_of(Run.load(self._store, run.trace_id))
            self._keep(run, found, older=older)
        except RunUnknown:  # deleted in the meantime
            self._aside.add(trace_id)
        except (*OF_ONE_RUN, PlayheadError) as problem:
            self._aside.add(trace_id)
            log.error("no findings of run %s: %r", trace_id.hex(), problem)
        now_s = time.monotonic()
        self._not_before[trace_id] = now_s + RESTS * (time.thread_time() - begin_cpu_s)
        if len(self._not_before) > MOST_WATCHED:
            self._not_before = {one: due for one, due in self._not_before.items() if due > now_s}

    def _keep(self, run: RunSummary, found: Findings, *, older: bool) -> None:
        trace_id = bytes.fromhex(run.trace_id)
        failed, recovered, looped = found.failed, found.recovered, found.looped
        words = failure_words(failed, recovered)
        words |= {one + FAILED for one in failed} | {one + RECOVERED for one in recovered}
        self._store.store_findings(
            trace_id,
            {
                "failure": words,
                "loop": {"yes", *looped} if looped else (),
                "derived": (f"{VERSION}.{run.arrived_ns}",),
            },
        )
        if found.is_looping and run.status == "running":
            self._looping.add(trace_id)
        else:
            self._looping.discard(trace_id)
        now = msgspec.structs.replace(
            run,
            failure_codes=sorted(failed),
            recovered_codes=sorted(recovered),
            loop_names=sorted(looped),
        )
        if not older:
            self._report(now, run, found)

    def _report(self, now: RunSummary, before: RunSummary, found: Findings) -> None:
        known = {*before.failure_codes, *before.recovered_codes}
        for one in found.failures:
            word = failure_word(one.type, one.code)
            if word in known or (one.recovered and word in now.failure_codes):
                continue
            known.add(word)
            self.failures[one.type, one.code] += 1
            said = {name: value for name, value in one.to_json().items() if name != "evidence"}
            words = failure_words([], [word]) if one.recovered else failure_words([word], [])
            self._notify(AlertEvent("failure", word, frozenset(words), said, now))
        for report in found.reported:
            kind, code = report.text("type"), report.text("code")
            word = failure_word(kind, code)
            if word in known:
                continue
            known.add(word)
            if (kind, code) in _COUNTED:
                self.failures[kind, code] += 1
            said = {name: value for name, value in report.fields.items() if name != "message"}
            words = frozenset(failure_words([word], []))
            self._notify(AlertEvent("failure", word, words, {**said, "derived": False}, now))
        names = {one.rpartition(" ×")[0] for one in before.loop_names}
        for loop in found.loops:
            if loop_name(loop) not in names:
                names.add(loop_name(loop))
                self.loops += 1
                self._notify(AlertEvent("loop", loop_name(loop), frozenset(), loop.to_json(), now))

    def _watch(self) -> None:
        """Look at what the running runs do, and store which of them are stuck."""
        stuck: Counter[str] = Counter()
        seen: dict[bytes, _Seen] = {}
        now_s = time.monotonic()
        for run in self._store.runs(Query(status="running", mode=None, limit=MOST_WATCHED)):
            trace_id = bytes.fromhex(run.trace_id)
            known = self._seen.get(trace_id)
            if known is not None and known.arrived_ns == run.arrived_ns:
                now, read_s = known.now, known.read_s
            elif (
                known
                and now_s - known.read_s < self._patience.read_s
                and not (run.stuck or trace_id in self._looping)
            ):
                seen[trace_id] = known  # it changes, so it is not stuck
                continue
            else:
                now, read_s = activity_of(self._store, run), now_s
            if now is None:
                seen[trace_id] = _Seen(None, now_s, run.arrived_ns, read_s)
                continue
            same = known and known.now and known.now.key == now.key
            since_s = known.since_s if known and same else now_s
            seen[trace_id] = _Seen(now, since_s, run.arrived_ns, read_s)
            looping = trace_id in self._looping and now.what != "person"
            reason = "loop" if looping else self._patience.reason(now, now_s - since_s)
            if reason:
                stuck[reason] += 1
            if reason != run.stuck:
                self._store.store_findings(trace_id, {"stuck": {"yes", reason} if reason else ()})
            if reason and reason != run.stuck:
                said: dict[str, Any] = {
                    "reason": reason,
                    "doing": now.what,
                    "name": now.name,
                    "since_ns": now.progress_ns,
                }
                run = msgspec.structs.replace(run, stuck=reason)
                self._notify(AlertEvent("stuck", f"{reason}/{now.key}", frozenset(), said, run))
        self._seen, self.stuck = seen, stuck
        self._looping &= seen.keys()
