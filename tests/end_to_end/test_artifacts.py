"""What a run made is listed with the step that made it, and fetched by its digest."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
import pytest
from support.observed.asking import ASKING
from support.servers.scripted import Request, ScriptedServer, json_reply, openai_chat
from support.starting.branching import environment, playhead, stored

from playhead_core.facts import digest_of
from playhead_receiver.config.configuration import Access, Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_replay.workspace.artifacts import artifacts_of

SECRET = "sk-" + "abcdEFGH1234" * 4
AGENT = (
    f"""
import base64, sys
from pathlib import Path

import playhead
{ASKING}"""
    + """
Path("chart.png").write_bytes(base64.b64decode(sys.argv[1]))


def asks(text):
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + sys.argv[1]}}
    said = [{"role": "user", "content": [{"type": "text", "text": text}, image]}]
    return answered(messages=said)["content"]


@playhead.tool
def publish(text):
    playhead.artifact("report.html", f"<script>alert({text!r})</script>")
    return len(text)


first = asks("what is this?")
with open("report.md", "w") as report:
    report.write(first)
publish(first)
second = asks("and now?")
with open("report.md", "a") as report:
    report.write(second)
Path("gone.txt").write_text("gone")
Path("gone.txt").unlink()
playhead.artifact("data/table", b"\\x00\\x01" * 4, media_type="application/x-table")
playhead.artifact("../../etc/passwd", "text", media_type="image/svg+xml")
playhead.artifact("chart copy.png", Path("chart.png"))
playhead.artifact("nothing.png", Path("nothing.png"))
playhead.artifact("huge.bin", bytes(2000))
playhead.artifact("key.txt", "SECRET_API_KEY=" + sys.argv[2])
"""
)


def picture() -> bytes:
    """A PNG of one pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"\0\xff")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


PICTURE = picture()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Mapping[str, str]]]:
    folder = tmp_path_factory.mktemp("artifacts")
    work = folder / "work"
    work.mkdir()
    (work / "agent.py").write_text(AGENT)

    def answer(request: Request):
        return json_reply(openai_chat.completion(f"{len(request.json['messages'])} thing\n"))

    with ScriptedServer() as provider:
        provider.on("/v1/chat/completions", answer, repeat=True)
        environ = environment(folder, provider.url, PLAYHEAD_FILE_LIMIT_BYTES="1500")
        del environ["PLAYHEAD_ENDPOINT"]
        words = base64.b64encode(PICTURE).decode(), SECRET
        done = playhead("record", "agent.py", *words, environ=environ, cwd=work)
        assert done.returncode == 0, done.stderr
    yield folder, environ


def test_they_are_listed_with_the_steps_that_made_them(recorded: tuple[Path, Mapping[str, str]]):
    folder, _ = recorded
    with stored(folder, "last") as (run,):
        found = {one.name: one for one in artifacts_of(run)}
        read = {name: one.read() for name, one in found.items() if one.digest}
    assert {(one.name, one.made, one.media_type, one.step) for one in found.values()} == {
        ("chart.png", "file", "image/png", None),
        ("input image of step 1", "message", "image/png", 1),
        ("report.html", "named", "text/html", 2),
        ("report.md", "file", "text/markdown", None),
        ("data/table", "named", "application/x-table", None),
        ("../../etc/passwd", "named", "image/svg+xml", None),
        ("chart copy.png", "named", "image/png", None),
        ("nothing.png", "named", "image/png", None),
        ("huge.bin", "named", "application/octet-stream", None),
        ("key.txt", "named", "text/plain", None),
    }
    assert found["report.html"].span_id == run.steps[1].span.span_id
    assert read["report.md"] == b"1 thing\n1 thing\n"
    for name in ("chart.png", "chart copy.png", "input image of step 1"):
        assert read[name] == PICTURE and found[name].digest == digest_of(PICTURE).hex()
    assert [one.size_bytes for one in found.values() if not one.digest] == [0, 2000]
    assert found["nothing.png"].why == "it could not be read"
    assert found["huge.bin"].why == "it is larger than file-limit-bytes"
    assert SECRET.encode() not in read["key.txt"]
    assert found["key.txt"].why == "1 credentials in it were replaced"


def test_the_command_lists_and_takes_out(recorded: tuple[Path, Mapping[str, str]], tmp_path: Path):
    _, environ = recorded
    listed = playhead("artifacts", environ=environ, cwd=tmp_path)
    assert f"{digest_of(PICTURE).hex()[:12]}      67 B            chart.png  image/png" in listed.stdout
    of_step = playhead("artifacts", "last:2", "--json", environ=environ, cwd=tmp_path)
    assert [one["name"] for one in json.loads(of_step.stdout)["artifacts"]] == ["report.html"]
    got = playhead("artifacts", "--get", "report.md", environ=environ, cwd=tmp_path)
    assert got.returncode == 0, got.stderr
    assert (tmp_path / "report.md").read_text() == "1 thing\n1 thing\n"
    again = playhead("artifacts", "--get", "report.md", environ=environ, cwd=tmp_path)
    assert again.returncode == 2 and "report.md already exists" in again.stderr
    digits = digest_of(PICTURE).hex()[:12]
    playhead("artifacts", "--get", digits, "-o", "it.png", environ=environ, cwd=tmp_path)
    assert (tmp_path / "it.png").read_bytes() == PICTURE
    # A name that leads elsewhere names nothing but a file here.
    done = playhead("artifacts", "--get", "../../etc/passwd", environ=environ, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {one.name for one in tmp_path.iterdir()} == {"report.md", "it.png", "passwd"}
    for wanted, why in (("nowhere", "has no artifact nowhere"), ("huge.bin", "is not on the tape")):
        refused = playhead("artifacts", "--get", wanted, environ=environ, cwd=tmp_path)
        assert refused.returncode == 2 and why in refused.stderr


def test_a_replay_is_identical(recorded: tuple[Path, Mapping[str, str]]):
    folder, environ = recorded
    done = playhead("replay", "last", environ=environ, cwd=folder / "work")
    assert done.returncode == 0, done.stdout + done.stderr


def test_over_http_they_are_files_to_be_kept_and_nothing_else(
    recorded: tuple[Path, Mapping[str, str]],
):
    folder, _ = recorded
    configuration = Configuration(
        Addresses(http_port=0, grpc_port=None, query_port=0), Access(token="s3cret")
    )
    with Receiver(folder / "data", configuration) as running:
        api = httpx.Client(base_url=running.query_endpoint, timeout=60)
        assert api.get("/v1/runs/last/artifacts").status_code == 401
        api.headers["authorization"] = "Bearer s3cret"
        listed = {one["name"]: one for one in api.get("/v1/runs/last/artifacts").json()["artifacts"]}
        got = {
            name: api.get(f"/v1/runs/last/artifacts/{one['digest']}")
            for name, one in listed.items()
            if one["digest"]
        }
        assert api.get(f"/v1/runs/last/artifacts/{'0' * 64}").status_code == 404
        assert api.get("/v1/runs/last/artifacts/report.md").status_code == 422
        unasked = httpx.get(f"{running.query_endpoint}/v1/runs/last/artifacts/{'0' * 64}", timeout=60)
        assert unasked.status_code == 401
        api.close()
    assert got["chart.png"].content == PICTURE
    assert got["chart.png"].headers["content-type"] == "image/png"
    for name in ("report.html", "../../etc/passwd", "data/table"):
        assert got[name].headers["content-type"] == "application/octet-stream"
    for answer in got.values():
        assert answer.status_code == 200
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-disposition"].startswith('attachment; filename="')
        assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
