"""Rows of runs: new ones with their names, changes of others, and which processes belong to them."""

from __future__ import annotations

from playhead_receiver.storage.runs.naming import agent_word
from playhead_receiver.storage.sql.writing.draft import RowDraft
from playhead_receiver.storage.sql.writing.known_rows import KnownRows
from playhead_receiver.storage.writing.known_instances import Instance


class RunRows:
    """Drafts the rows of runs in one transaction."""

    def __init__(self, known: KnownRows, draft: RowDraft) -> None:
        self._known = known
        self._draft = draft

    def touch(self, trace_id: bytes, agent: str, started_ns: int) -> None:
        """Note that something of a run arrived, and insert the run if it is new."""
        if trace_id not in self._known.runs:
            self._known.runs.add(trace_id)
            draft, word = self._draft, agent_word(agent)
            number = draft.agents[word] = self._known.next_number(word)
            draft.new_runs[trace_id] = (
                trace_id,
                f"{word}-{number}",
                agent or word,
                started_ns,
                draft.now_ns,
                draft.position,
            )
        run = self._draft.run(trace_id)
        run.started_ns = min(run.started_ns, started_ns)

    def join(self, trace_id: bytes, known: Instance) -> bool:
        """Add a process to a run; whether it is new to the run."""
        members = self._known.members.setdefault(trace_id, set())
        if known.row in members:
            return False
        members.add(known.row)
        self._draft.members[trace_id, known.row] = None
        return True
