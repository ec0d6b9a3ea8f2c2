"""Reads everything in tables and blobs, and compares it with its digests and with what refers to it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator, Iterator
from typing import Any

from playhead_core.errors import PlayheadError, StoreUnavailable
from playhead_core.facts import digest_of
from playhead_core.integrity.number_ranges import merged, without
from playhead_receiver.storage.api.maintenance import Finding
from playhead_receiver.storage.content.blobs import Blobs
from playhead_receiver.storage.content.cutting import DIGEST_BYTES
from playhead_receiver.storage.content.texts import PLACE_BITS, Texts, addresses_in, frame_of, items_of
from playhead_receiver.storage.spans.span_view import open_frame, parse_span
from playhead_receiver.storage.sql.maintenance.verify_chains import ChainChecks
from playhead_receiver.storage.sql.reading.summaries import COLUMNS, differs, stored_run
from playhead_receiver.storage.sql.tables.blob_uses import uses_of
from playhead_receiver.storage.sql.tables.database import Db
from playhead_receiver.storage.sql.tables.frames import frames_at
from playhead_receiver.storage.sql.tables.integrity import verify_tombstones
from playhead_receiver.storage.writing.prepare import open_run


def verify(db: Db, blobs: Blobs) -> Iterator[Finding]:
    """Yield all findings."""
    yield from _spans(db)
    yield from _logs(db)
    yield from _texts(db)
    yield from _links(db)
    yield from _facts(db, blobs)
    yield from _runs(db)
    yield from verify_tombstones(db)


def _reading(db: Db) -> Texts:
    return Texts(lambda id: frames_at(db, id))


def _spans(db: Db) -> Generator[Finding]:
    texts = _reading(db)
    rows: Any = db.execute(
        "SELECT trace_id, span_id, bundle, place, resource.data FROM span LEFT JOIN resource"
        " ON resource.id = span.resource ORDER BY bundle, place"
    )
    for trace_id, span_id, bundle, place, resource in rows:
        where, runs = f"{trace_id.hex()}/{span_id.hex()}", _hex(trace_id)
        if resource is None:
            yield Finding("span", where, "its resource is missing", runs)
            continue
        try:
            view = parse_span(open_frame(resource + texts.span(bundle, place))[1])
        except Exception as problem:  # damage may raise anything
            yield Finding("span", where, _problem_text(problem), runs)
            continue
        if (view.trace_id, view.span_id) != (trace_id, span_id):
            yield Finding("span", where, f"it is {view.trace_id.hex()}/{view.span_id.hex()}", runs)


def _logs(db: Db) -> Generator[Finding]:
    texts = _reading(db)
    rows: Any = db.execute(
        "SELECT trace_id, time_ns, log.digest, bundle, place, resource.data FROM log"
        " LEFT JOIN resource ON resource.id = log.resource ORDER BY bundle, place"
    )
    for trace_id, time_ns, digest, bundle, place, resource in rows:
        where, runs = f"log record of {trace_id.hex()} at {time_ns}", _hex(trace_id)
        if resource is None:
            yield Finding("log", where, "its resource is missing", runs)
            continue
        try:
            record = open_frame(resource + texts.span(bundle, place))[1]
        except Exception as problem:
            yield Finding("log", where, _problem_text(problem), runs)
            continue
        if digest_of(record)[: len(digest)] != digest:
            yield Finding("log", where, "it differs from its digest", runs)


def _texts(db: Db) -> Generator[Finding]:
    texts = _reading(db)
    rows: Any = db.execute(
        "SELECT digest, address, bundle.trace_id FROM text LEFT JOIN bundle"
        f" ON bundle.id = text.address / {1 << PLACE_BITS} ORDER BY address"
    )
    for digest, address, owner in rows:
        try:
            found = digest_of(texts.text(address))[:DIGEST_BYTES]
        except Exception as problem:
            yield Finding("text", digest.hex(), _problem_text(problem), _hex(owner))
            continue
        if found != digest:
            problem = f"the text at {address} differs from its digest"
            yield Finding("text", digest.hex(), problem, _hex(owner))


def _links(db: Db) -> Generator[Finding]:
    """Finds references between bundles of different traces without a link, and dangling links."""
    owners: dict[int, bytes] = {}
    rows: Any = db.execute("SELECT id, trace_id FROM bundle")
    for id, trace_id in rows:
        owners[id] = trace_id
    frames: dict[int, bytes] = {}
    for id in sorted(owners):
        where, runs = f"frame {id}", _hex(owners[id])
        try:
            frames = frames if id in frames else frames_at(db, id)
            refers = {one for item in items_of(frames[id]) for one in addresses_in(item, id)}
        except KeyError:
            yield Finding("text", where, "it is missing", runs)
            continue
        except Exception as problem:
            yield Finding("text", where, _problem_text(problem), runs)
            continue
        for address in sorted(refers):
            owner = owners.get(frame_of(address))
            if owner is None:
                yield Finding("link", where, f"frame {frame_of(address)} is missing", runs)
            elif (
                frame_of(address) != id
                and (owner != owners[id] or not owner)
                and not _is_linked(db, address, id)
            ):
                problem = f"text {address} of another run is not linked"
                yield Finding("link", where, problem, _hex(owners[id], owner))
    rows = db.execute("SELECT target, bundle FROM text_link")
    for target, id in rows:
        if id not in owners or frame_of(target) not in owners:
            runs = _hex(owners.get(id), owners.get(frame_of(target)))
            yield Finding("link", f"frame {id}", f"the link to text {target} is unused", runs)


def _is_linked(db: Db, address: int, bundle: int) -> bool:
    found: Any = db.execute(
        "SELECT 1 FROM text_link WHERE target = ? AND bundle = ?", (address, bundle)
    ).get
    return found is not None


_IS_USED = "SELECT 1 FROM blob_use WHERE digest = ? AND position = ?"


def _facts(db: Db, blobs: Blobs) -> Generator[Finding]:
    there: dict[int, list[tuple[int, int]]] = {}
    members, aged = _members(db), _aged(db)
    chains = ChainChecks(db, members)
    rows: Any = db.execute(
        "SELECT position, fact_run.instance, first, last, data, blobs, instance.instance FROM fact_run"
        " LEFT JOIN instance ON instance.id = fact_run.instance ORDER BY fact_run.instance, first"
    )
    uses = 0
    for position, row, first, last, data, offloaded, instance in rows:
        name = "an unknown process" if instance is None else instance.hex()
        where, runs = f"{name} {first}-{last}", members.get(row, [])
        yield from chains.turn_to(row)
        ranges = there.setdefault(row, [])
        if ranges and ranges[-1][1] == first - 1:
            ranges[-1] = (ranges[-1][0], last)
        else:
            ranges.append((first, last))
        try:
            for use in uses_of(position, offloaded):
                uses += 1
                digest = use[0].hex()
                if not blobs.has(use[0]):
                    yield Finding("blob", digest, f"missing, and {where} needs it", runs)
                if db.execute(_IS_USED, use).get is None:
                    yield Finding("blob", digest, f"its use by {where} is not recorded", runs)
            facts = open_run(data, offloaded, blobs)
        except StoreUnavailable:  # no verdict is possible
            raise
        except Exception as problem:
            chains.unreadable(first, last)
            yield Finding("facts", where, _problem_text(problem), runs)
            continue
        chains.take(facts)
        if [fact.seq for fact in facts] != _left(first, last, aged.get(row, [])):
            yield Finding("facts", where, "the numbers differ", runs)
        for fact in facts:
            body = fact.body
            whole = body is not None and body.base is None and body.inline is not None and body.digest
            if whole and body is not None and digest_of(body.inline or b"") != body.digest:
                if body.size == len(body.inline or b""):
                    problem = "its body differs from its digest"
                    yield Finding("facts", f"{name} {fact.seq}", problem, runs)
    yield from chains.rest()
    noted = int(db.execute("SELECT count(*) FROM blob_use").get)
    if noted > uses:
        yield Finding("blob", "blob_use", f"{noted} uses of blobs are recorded, {uses} exist")
    for row, ranges in aged.items():
        there[row] = merged([*there.get(row, []), *ranges])
    yield from _ranges(db, there, members)


def _aged(db: Db) -> dict[int, list[tuple[int, int]]]:
    """Ranges of numbers that have aged out, ascending, by process."""
    found: dict[int, list[tuple[int, int]]] = {}
    rows: Any = db.execute("SELECT instance, first, last FROM aged ORDER BY instance, first")
    for row, first, last in rows:
        found.setdefault(row, []).append((first, last))
    return found


def _left(first: int, last: int, aged: list[tuple[int, int]]) -> list[int]:
    """The numbers from ``first`` to ``last`` that have not aged out; both ends have not."""
    left: list[int] = []
    at = first
    for begin, end in aged[bisect_right(aged, (first, last)) :]:
        if begin >= last:
            break
        left += range(at, begin)
        at = end + 1
    return [*left, *range(at, last + 1)]


def _ranges(
    db: Db, there: dict[int, list[tuple[int, int]]], members: dict[int, list[str]]
) -> Generator[Finding]:
    """Finds numbers of facts that are listed and not stored, and the other way round."""
    said: dict[int, list[tuple[int, int]]] = {}
    names: dict[int, str] = {}
    rows: Any = db.execute(
        "SELECT fact_range.instance, first, last, instance.instance FROM fact_range LEFT JOIN instance"
        " ON instance.id = fact_range.instance ORDER BY fact_range.instance, first"
    )
    for row, first, last, instance in rows:
        said.setdefault(row, []).append((first, last))
        names[row] = f"process {row}" if instance is None else instance.hex()
    for row in sorted(said.keys() | there.keys()):
        listed, here = said.get(row, []), there.get(row, [])
        for some, others, problem in (
            (listed, here, "were received and are missing"),
            (here, listed, "are stored and not listed"),
        ):
            for first, last in without(some, others):
                where = names.get(row, f"process {row}")
                yield Finding("facts", where, f"{first}-{last} {problem}", members.get(row, []))


def _members(db: Db) -> dict[int, list[str]]:
    """The trace ids of the runs of each process instance, by row."""
    found: dict[int, list[str]] = {}
    rows: Any = db.execute("SELECT instance, trace_id FROM run_instance ORDER BY instance")
    for row, trace_id in rows:
        found.setdefault(row, []).append(trace_id.hex())
    return found


def _runs(db: Db) -> Generator[Finding]:
    rows: Any = db.execute(
        "SELECT trace_id FROM (SELECT trace_id FROM span UNION SELECT trace_id FROM log) AS stored"
        " WHERE trace_id NOT IN (SELECT trace_id FROM run)"
    )
    for (trace_id,) in rows:
        yield Finding("run", trace_id.hex(), "it has spans or log records but is not listed")

    rows = db.execute(f"SELECT {COLUMNS} FROM run")
    for row in list(rows):
        run = stored_run(row)
        if differs(db, run):
            id = run.row.trace_id
            yield Finding("run", id.hex(), "its summary differs from its spans", _hex(id))
    for table, users in (
        ("resource", "SELECT resource FROM span UNION ALL SELECT resource FROM log"),
        ("label", "SELECT label FROM span"),
    ):
        rows = db.execute(
            f"SELECT {table}.id, uses, count(used.{table}) FROM {table} LEFT JOIN ({users}) AS used"
            f" ON used.{table} = {table}.id GROUP BY {table}.id HAVING uses != count(used.{table})"
        )
        for id, uses, count in rows:
            yield Finding("run", f"{table} {id}", f"{count} items use it, not {uses}")


def _hex(*trace_ids: bytes | None) -> list[str]:
    """The known ones of these trace ids, in hex, each once."""
    return [one.hex() for one in dict.fromkeys(trace_ids) if one]


def _problem_text(problem: Exception) -> str:
    return problem.what if isinstance(problem, PlayheadError) else f"it cannot be read: {problem}"
