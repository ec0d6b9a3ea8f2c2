"""``playhead show RUN --custody``: the integrity of a run, and later changes to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from playhead_cli.integrity.of_file import CheckedSignature
from playhead_cli.output.integrity import (
    difference_lines,
    findings_of,
    process_lines,
    process_object,
    tombstone_line,
    tombstone_object,
)
from playhead_cli.session.printing import print_lines
from playhead_cli.session.session import Session
from playhead_cli.targets.run_argument import Target, reading
from playhead_core.errors import RunUnknown
from playhead_core.integrity import ChainMapping, Link
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_receiver.archive.run_files import Material
from playhead_receiver.storage.api.maintenance import Verification
from playhead_receiver.storage.api.store import needed
from playhead_replay.run.run import trace_of
from playhead_replay.tape_files.integrity import inspect
from playhead_replay.tape_files.tape_file import TapeFile, read_tape_file, standing_alone

if TYPE_CHECKING:
    from playhead_cli.json_output.shown import PrintedCustody, PrintedSignature
    from playhead_core.integrity.tombstones import Tombstone
    from playhead_receiver.storage import Store
    from playhead_replay.tape_files.integrity import Chained


def show_custody(session: Session, target: Target) -> None:
    """Print the custody of a run. `RunUnknown` if there is neither such a run nor a tombstone of one."""
    if target.is_file or Path(target.run).is_file():
        _show_file(session, Path(target.run))
        return
    with reading(session) as store:
        _show_stored(session, store, target.run)


def _show_file(session: Session, path: Path) -> None:
    found = read_tape_file(path)
    processes, trace_id = inspect(found), trace_of(found.tapes, found.spans)
    signature = CheckedSignature.of(found, processes, trace_id, None)
    if session.as_json:
        _print_object(session, path.name, trace_id, processes, [], signature.plain())
        return
    _print(session, [path.name, *_lines(processes), f"  {signature.line()}"])


def _show_stored(session: Session, store: Store, name: str) -> None:
    tombstones = needed(store, Verification).tombstones
    try:
        trace_id = store.resolve(name).trace_id
    except RunUnknown:
        left = [one for one in tombstones() if _is_of(one, name)]
        if not left:
            raise
        if session.as_json:
            _print_object(session, name, None, [], left, None)
        else:
            _print(session, [name, *(f"  {tombstone_line(one)}" for one in left)])
        return
    run, found = _as_file(store, trace_id)
    processes = inspect(found)
    left = [one for one in tombstones() if trace_id in {id.hex() for id, _ in one.runs}]
    if session.as_json:
        _print_object(session, run, trace_id, processes, left, None)
        return
    _print(session, [run, *_lines(processes), *(f"  {tombstone_line(one)}" for one in left)])
    session.suggest(f"playhead export {run} --sign KEY")


def _as_file(store: Store, trace_id: str) -> tuple[str, TapeFile]:
    """Return the name of a run, and the content that its file would have."""
    material = Material.of_store(store, trace_id)
    tapes: list[MemoryTape] = []
    for tape in material.tapes:
        facts = list(standing_alone(tape))
        tapes.append(MemoryTape(facts, tape.instance))
        for fact in facts:
            material.chains.take(fact)
    chains: dict[bytes, list[Link]] = {}
    parts: dict[bytes, ChainMapping] = {}
    for record in material.chains.records():
        if isinstance(record, ChainMapping):
            parts[record.instance] = record
        else:
            chains.setdefault(record.instance, []).append(record)
    return material.run.name, TapeFile([*tapes], chains={**chains}, parts=parts)


def _is_of(tombstone: Tombstone, name: str) -> bool:
    return any(name in (run, trace_id.hex()) for trace_id, run in tombstone.runs)


def _lines(processes: list[Chained]) -> Iterator[str]:
    for one in processes:
        for line in process_lines(one):
            yield f"  {line}"
        for line in difference_lines([one]):
            yield f"    {line}"


def _print(session: Session, lines: list[str]) -> None:
    print_lines(session, map(Text, lines), paged=True, cut=False)


def _print_object(
    session: Session,
    name: str,
    trace_id: str | None,
    processes: list[Chained],
    left: list[Tombstone],
    signature: PrintedSignature | None,
) -> None:
    printed: PrintedCustody = {
        "schema_version": 1,
        "run": name,
        "trace_id": trace_id or None,
        "processes": [{**process_object(one), "findings": findings_of(one)} for one in processes],
        "signature": signature,
        "tombstones": [tombstone_object(one) for one in left],
    }
    session.print_json(printed)
