"""Copies of what is put: each node once for a run, without credentials, and within their budget."""

from __future__ import annotations

import random
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from playhead_checkpoint import SqliteCheckpoints, register
from playhead_checkpoint.copies import reporting
from playhead_checkpoint.copies.copier import StateCopier, read_copy
from playhead_checkpoint.tree.nodes import PIECE_BYTES, digest_of
from playhead_checkpoint.tree.reading import Reader
from playhead_checkpoint.tree.types import TYPES
from playhead_core.errors import CorruptTape
from playhead_instrumentation.redaction import Redactor

RUN, PLENTY = b"r" * 32, 1 << 28
SECRET = "sk-proj-" + "".join(random.Random(7).choices("abcdefghijkmnpqrstuvwxyz0123456789", k=40))
CUT = 2 * PIECE_BYTES - len("It is ") - 20
"""Length of what stands before a credential that then lies across two pieces of a text."""


@register
@dataclass
class Order:
    number: int
    notes: Any


class Tape:
    """Keeps the copies of one store, as a tape does."""

    def __init__(self, most_bytes: int = PLENTY) -> None:
        self.copier = StateCopier(Redactor(), most_bytes)
        self.run = RUN
        self.copies: list[bytes | None] = []

    def told(self, *given: Any) -> None:
        self.copies.append(self.copier.copy(self.run, *given))

    def state(self, at: int = -1) -> Any:
        """The state of a copy, of the copies alone."""
        held = {digest_of(one): one for copy in self.copies if copy for one in read_copy(copy).nodes}
        data = self.copies[at]
        assert data is not None
        return Reader(lambda digests: {one: held[one] for one in digests}, TYPES).value(
            read_copy(data).packed
        )


@contextmanager
def copied(patch: pytest.MonkeyPatch, path: Path, tape: Tape) -> Generator[SqliteCheckpoints]:
    patch.setattr(reporting, "report_state", tape.told)
    with SqliteCheckpoints(path) as store:
        yield store


def grown(count: int) -> list[dict[str, Any]]:
    chance = random.Random(1)
    return [{"role": "user", "content": f"{chance.getrandbits(800):x}"} for _ in range(count)]


def test_a_step_is_copied_with_what_it_adds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tape, messages = Tape(), grown(400)
    with copied(monkeypatch, tmp_path / "c.sqlite", tape) as store:
        for count in range(1, len(messages) + 1):
            store.put({"messages": messages[:count], "note": "n" * 5000})
    sizes = [len(copy or b"") for copy in tape.copies]
    assert sum(sizes) < 10 * 250 * len(messages)
    assert sum(sizes[300:]) < 1.2 * sum(sizes[100:200])
    assert tape.state() == {"messages": messages, "note": "n" * 5000}
    assert tape.state(99)["messages"] == messages[:100]
    nodes = [node for copy in tape.copies if copy for node in read_copy(copy).nodes]
    assert len(nodes) == len(set(nodes))


def test_a_run_has_all_that_its_copies_rest_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tape, messages = Tape(), grown(200)
    with copied(monkeypatch, tmp_path / "c.sqlite", tape) as store:
        store.put(messages)
        tape.run, tape.copies = b"s" * 32, []
        store.put([*messages, "more"])
    assert tape.state() == [*messages, "more"]


def test_what_is_copied_is_not_copied_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tape, messages = Tape(), grown(200)
    with copied(monkeypatch, tmp_path / "c.sqlite", tape) as store:
        gone = store.put("gone")
        store.put(messages)
        store.delete([gone.id])  # from now on the store looks for all nodes again
        store.put([*messages, "more"])
    assert read_copy(tape.copies[-1] or b"").nodes == []


@pytest.mark.parametrize(
    "state",
    [
        {"said": f"my key is {SECRET}", "n": 1},
        {"api_key": "abc7", "said": "hello"},
        [{"said": "hello"}] * 200 + [{"said": f"my key is {SECRET}"}] + [{"said": "bye"}] * 200,
        {"text": f"{'x ' * (CUT // 2)}It is {SECRET} {'y ' * 9000}"},
        {"order": Order(7, f"key {SECRET}"), "raw": b"\x00\xff" + SECRET.encode()},
        {"order": [Order(n, {"password": "abc7", "text": "long " * 400}) for n in range(3)]},
        {"deep": {str(n): {"list": [f"{SECRET} {n}"] * 40} for n in range(90)}},
    ],
    ids=["text", "name", "list", "long text", "types", "large types", "deep"],
)
def test_credentials_are_not_in_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: Any):
    tape = Tape()
    with copied(monkeypatch, tmp_path / "c.sqlite", tape) as store:
        kept = store.put(state)
        assert store.state(kept.id) == state  # the store has it whole
    found, data = repr(tape.state()), b"".join(copy or b"" for copy in tape.copies)
    assert SECRET[8:20].encode() not in data
    assert "abc7" not in found and SECRET[8:20] not in found
    assert found[:2] == repr(state)[:2]
    assert ("redact" in found) or ("REDACTED" in found.upper())


def test_what_stands_beside_a_credential_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tape = Tape()
    said = [f"number {n}" for n in range(500)]
    with copied(monkeypatch, tmp_path / "c.sqlite", tape) as store:
        store.put({"said": said, "key": SECRET, "order": Order(1, (2.5, None, True, -3))})
        store.put({"said": [*said, SECRET], "key": "none", "order": Order(1, {"x"})})
    first, then = tape.state(0), tape.state(1)
    assert first["said"] == said and first["order"] == Order(1, (2.5, None, True, -3))
    assert then["said"][:-1] == said and SECRET not in then["said"] and then["order"] == Order(1, {"x"})


def test_beyond_the_budget_nothing_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tape = Tape(most_bytes=20_000)
    with copied(monkeypatch, tmp_path / "c.sqlite", tape) as store:
        store.put("small")
        store.put(grown(200))
        store.put("small again")
    assert [copy is not None for copy in tape.copies] == [True, False, False]


@pytest.mark.parametrize("data", [b"", b"\x90", b"\x96" + b"\xa0" * 6, b"\xff" * 40])
def test_what_is_no_copy_is_refused(data: bytes):
    with pytest.raises(CorruptTape):
        read_copy(data)
