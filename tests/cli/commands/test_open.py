"""`open`: links to the pages, with the receiver that runs or one of its own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from support.starting.cli import CommandLine, refund, store_run

from playhead_cli.running.receiver_for_run import ReceiverForRun
from playhead_receiver.config.configuration import Access, Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_receiver.system.writer_lock import running


@pytest.fixture
def receiver(playhead: CommandLine, refund_1: str) -> Iterator[Receiver]:
    configuration = Configuration(
        Addresses(http_port=0, grpc_port=None, query_port=0), Access(guarded=True)
    )
    with Receiver(playhead.data_dir, configuration) as started:
        yield started


def link(playhead: CommandLine, *words: str) -> str:
    return json.loads(playhead("open", *words, "--json").out)["link"]


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ((), ""),
        (("last",), "?run=refund-1"),
        (("refund-1:3",), "?run=refund-1&step=3"),
        (("refund-1:error",), "?run=refund-1&step=11"),
        (("refund-1:start",), "?run=refund-1&step=1"),
    ],
)
def test_the_link_names_the_place(
    playhead: CommandLine, receiver: Receiver, words: tuple[str, ...], place: str
):
    found = running(playhead.data_dir)
    assert found is not None
    assert link(playhead, *words) == f"{receiver.query_endpoint}/{place}#token={found.key}"
    assert playhead("open", "--print", *words).out.strip() == link(playhead, *words)


def test_what_is_not_there_is_said(playhead: CommandLine, receiver: Receiver):
    assert playhead("open", "nothing-9").status == 2
    assert playhead("open", "refund-1:99").status == 2
    assert "playhead import" in playhead("open", "some.tape").err


def test_without_a_receiver_it_serves_the_pages_itself_to_who_has_the_link(
    playhead: CommandLine, refund_1: str
):
    words = [sys.executable, "-m", "playhead_cli", "open", refund_1, "--json"]
    words += ["--data-dir", str(playhead.data_dir), "--no-config"]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        place = urlsplit(json.loads(child.stdout.readline())["link"])
        url = f"http://{place.netloc}"
        assert httpx.get(f"{url}/?{place.query}", timeout=60).status_code == 200
        assert httpx.get(f"{url}/v1/runs", timeout=60).status_code == 401
        token = {"authorization": f"Bearer {place.fragment.removeprefix('token=')}"}
        listed = httpx.get(f"{url}/v1/runs", headers=token, timeout=60).json()
        assert [run["name"] for run in listed["runs"]] == [refund_1]
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 0
    finally:
        child.kill()
        child.communicate()


def test_the_receiver_within_a_recording_serves_pages_to_the_owner_of_the_folder(tmp_path: Path):
    store_run(tmp_path, refund())
    house = ReceiverForRun(tmp_path)
    try:
        house.listening()
        found = running(tmp_path)
        assert found is not None and found.passing and found.pid == os.getpid()
        assert httpx.get(f"{found.query}/", timeout=60).status_code == 200
        assert httpx.get(f"{found.query}/v1/runs", timeout=60).status_code == 401
        token = {"authorization": f"Bearer {found.key}"}
        listed = httpx.get(f"{found.query}/v1/runs", headers=token, timeout=60).json()
        assert len(listed["runs"]) == 1
        assert httpx.get(f"{found.http}/v1/playhead", timeout=60).status_code == 200
    finally:
        house.close()
