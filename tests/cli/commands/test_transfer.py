"""`playhead export` and `import`: there and back in both forms, and what is damaged."""

import gzip
import json
import os
import pty
import stat
import threading
import tty
from pathlib import Path

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from support.starting.cli import CommandLine, refund, store_run
from support.tapes.handmade import INSTANCE, NOW_INSTANCE, TRACE, HandMade

from playhead_core.tape.frames import CHAINED, WHOLE
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_receiver.storage import Batch, open_store
from playhead_replay import Run, read_tape_file

FORMS = ("refund.tape", "refund.tape.gz", "refund.otlp.jsonl", "refund.otlp.jsonl.gz")


@pytest.fixture
def two_processes(playhead: CommandLine) -> str:
    """A run of two processes, in the store."""
    parent = refund()
    child = HandMade(NOW_INSTANCE, TRACE)
    child.at_ns = parent.facts[0].time_ns + 1
    child.start()
    child.exit(0)
    resource = b"\n\x1e\n\x0cservice.name\x12\x0e\n\x0crefund-agent"
    store = open_store(playhead.data_dir)
    try:
        store.commit(Batch(parent.spans, [*parent.facts, *child.facts], {INSTANCE: resource}))
        return store.resolve(TRACE.hex()).name
    finally:
        store.close()


def stored(data_dir: Path) -> tuple[Run, list[list[object]]]:
    store = open_store(data_dir, read_only=True)
    try:
        run = Run.load(store, TRACE.hex())
        return run, [list(MemoryTape(tape.facts()).facts()) for tape in run.tapes]
    finally:
        store.close()


def elsewhere(playhead: CommandLine, tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path / "elsewhere", playhead._capture)


@pytest.mark.parametrize("form", FORMS)
def test_a_run_goes_out_and_comes_back_the_same(
    playhead: CommandLine, two_processes: str, tmp_path: Path, form: str
):
    path = tmp_path / form
    done = playhead("export", two_processes, "-o", str(path))
    assert (done.status, done.out) == (0, "")
    assert f"wrote {path}: 2 processes, 11 steps, " in done.err
    assert path.stat().st_mode & 0o777 == 0o600
    there = elsewhere(playhead, tmp_path)
    first = there("import", str(path))
    assert (first.status, first.err) == (0, "playhead: imported refund-1\n")
    run, facts = stored(playhead.data_dir)
    other, others = stored(there.data_dir)
    assert [tape.instance for tape in other.tapes] == [INSTANCE, NOW_INSTANCE]
    assert others == facts
    assert [step.span.name for step in other.steps] == [step.span.name for step in run.steps]
    assert (other.status, other.gaps) == (run.status, [])
    again = there("import", str(path), "--json")
    assert json.loads(again.out)["new"] is False
    assert there("import", str(path)).err == "playhead: refund-1 exists already\n"
    assert len(json.loads(there("ls", "--json").out)["runs"]) == 1


def test_a_tape_has_the_resource_and_all_spans(
    playhead: CommandLine, two_processes: str, tmp_path: Path
):
    path = tmp_path / "refund.tape"
    done = playhead("export", "--output", str(path), "--json")
    said = json.loads(done.out)
    assert said["size_bytes"] == path.stat().st_size
    found = read_tape_file(path)
    assert found.resources[INSTANCE] == {"service.name": "refund-agent"}
    assert len(found.spans) == len(refund().spans)
    assert path.read_bytes().startswith(CHAINED)


def test_otlp_lines_are_what_a_collector_reads(playhead: CommandLine, two_processes: str):
    done = playhead("export", "--format", "otlp", "-o", "-")
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert {tuple(line) for line in lines} == {("resourceLogs",), ("resourceSpans",)}
    for line in lines:
        kind = ExportLogsServiceRequest if "resourceLogs" in line else ExportTraceServiceRequest
        json_format.ParseDict(line, kind())  # no unknown field
    spans = [
        span
        for line in lines
        for resource in line.get("resourceSpans", [])
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
    assert {span["traceId"] for span in spans} == {TRACE.hex()}
    assert all(len(span["spanId"]) == 16 and isinstance(span["kind"], int) for span in spans)


def test_a_cut_tape_is_refused_with_the_position_and_may_be_taken_in_part(
    playhead: CommandLine, two_processes: str, tmp_path: Path
):
    path = tmp_path / "refund.tape"
    playhead("export", "-o", str(path))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    there = elsewhere(playhead, tmp_path)
    refused = there("import", str(path))
    assert refused.status == 1
    what, cause, hint = refused.err.splitlines()
    assert what.startswith("error[tape-corrupt]: refund.tape is damaged at byte ")
    assert cause.startswith("cause: ") and "facts and 0 spans before it can be read" in cause
    assert hint == "hint: keep what can be read: playhead import --partial refund.tape"
    assert not there.data_dir.exists()
    partly = there("import", "--partial", str(path), "--json")
    said = json.loads(partly.out)
    assert partly.status == 1
    assert 0 < said["facts"] < len(refund().facts) + 3
    assert said["damage"].startswith("refund.tape ends at byte ")
    assert [one["name"] for one in said["runs"]] == ["refund-1"]


def test_a_cut_gzip_and_a_cut_line_are_refused_too(
    playhead: CommandLine, two_processes: str, tmp_path: Path
):
    there = elsewhere(playhead, tmp_path)
    packed, lines = tmp_path / "refund.tape.gz", tmp_path / "refund.otlp.jsonl"
    for path in (packed, lines):
        playhead("export", "-o", str(path))
        path.write_bytes(path.read_bytes()[:-40])
        refused = there("import", str(path))
        assert refused.status == 1
        assert refused.err.startswith(f"error[tape-corrupt]: {path.name} is damaged at byte ")
    start = lines.read_bytes().rindex(b"\n") + 1
    assert f"damaged at byte {start}: " in there("import", str(lines)).err
    assert there("import", str(lines), "--partial").status == 1
    assert json.loads(there("ls", "--json").out)["runs"][0]["name"] == "refund-1"


def test_a_tape_that_ends_between_two_frames_is_damaged_as_well(
    playhead: CommandLine, two_processes: str, tmp_path: Path
):
    path = tmp_path / "refund.tape"
    playhead("export", "-o", str(path))
    data = path.read_bytes()
    footer = data.rindex(b"\x94\x03") - 8
    path.write_bytes(data[:footer])
    assert (
        f"damaged at byte {footer}: the file ends before its footer" in playhead("import", str(path)).err
    )


def test_a_later_version_is_refused_in_a_sentence(playhead: CommandLine, tmp_path: Path):
    path = tmp_path / "later.tape"
    path.write_bytes(b"playhead-tape\x005\n" + bytes(100))
    for command in ("import", "replay", "show"):
        refused = playhead(command, str(path))
        assert refused.status == 1
        assert refused.err.splitlines()[0] == (
            "error[tape-too-new]: later.tape was written by a later version of playhead (format 5)"
        )


def test_a_tape_is_rewritten_in_the_present_form(playhead: CommandLine, tmp_path: Path):
    old = Path(__file__).parents[2] / "replay" / "tape_files" / "fixtures" / "version-1.tape"
    new, lines = tmp_path / "new.tape.gz", tmp_path / "new.jsonl"
    assert playhead("export", str(old), "-o", str(new)).status == 0
    assert gzip.decompress(new.read_bytes()).startswith(WHOLE)
    assert list(read_tape_file(new).tape.facts()) == list(read_tape_file(old).tape.facts())
    assert playhead("export", str(old), "-o", str(lines)).status == 0
    assert playhead("import", str(lines)).err == "playhead: imported refund-1\n"


def test_what_is_neither_is_refused(playhead: CommandLine, tmp_path: Path):
    path = tmp_path / "notes.txt"
    path.write_text("hello\n")
    refused = playhead("import", str(path))
    assert refused.status == 2
    assert refused.err.startswith("error[usage]: notes.txt has none of the known formats")


def test_a_standing_receiver_is_used(playhead: CommandLine, tmp_path: Path):
    from playhead_receiver.config.configuration import Addresses, Configuration
    from playhead_receiver.server import Receiver

    path = tmp_path / "refund.tape"
    name = store_run(playhead.data_dir, refund())
    playhead("export", name, "-o", str(path))
    there = elsewhere(playhead, tmp_path)
    with Receiver(there.data_dir, Configuration(Addresses(http_port=0, grpc_port=None))):
        assert there("import", str(path)).err == "playhead: imported refund-1\n"


@pytest.mark.parametrize("form", FORMS)
def test_a_link_stays_a_link(playhead: CommandLine, two_processes: str, tmp_path: Path, form: str):
    (tmp_path / "there").mkdir()
    link, real = tmp_path / form, tmp_path / "there" / "real"
    for before in (None, b"old"):  # one that leads to nothing, too
        if before is not None:
            real.write_bytes(before)
        else:
            link.symlink_to(real)
        assert playhead("export", two_processes, "-o", str(link)).status == 0
        assert link.is_symlink() and real.is_file()
        assert len(real.read_bytes()) > 100


@pytest.mark.parametrize("form", ["tape", "otlp"])
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_device_and_a_pipe_stay_and_are_written_to(
    playhead: CommandLine, two_processes: str, tmp_path: Path, form: str, kind: str
):
    if kind == "pipe":
        place = tmp_path / "pipe"
        os.mkfifo(place)
        reader = os.open(place, os.O_RDONLY | os.O_NONBLOCK)
        os.set_blocking(reader, True)
        writer = os.open(place, os.O_WRONLY)  # so that the reader waits for more
    else:
        reader, writer = pty.openpty()
        tty.setraw(writer)
        place = Path(os.ttyname(writer))
    before = place.stat()
    heard = bytearray()

    def hear() -> None:
        while not heard.endswith(b"END"):
            heard.extend(os.read(reader, 1 << 16))

    thread = threading.Thread(target=hear)
    thread.start()
    try:
        done = playhead("export", two_processes, "-o", str(place), "--format", form, "--json")
    finally:
        os.write(writer, b"END")
        thread.join()
        os.close(reader)
        os.close(writer)
    assert done.status == 0, done.err
    assert stat.S_IFMT(before.st_mode) in (stat.S_IFIFO, stat.S_IFCHR)
    assert len(heard) - 3 == json.loads(done.out)["size_bytes"]
    assert bytes(heard[:8]) == (b"playhead" if form == "tape" else b'{"resour')
    if kind == "pipe":
        assert stat.S_ISFIFO(place.stat().st_mode) and place.stat().st_ino == before.st_ino
