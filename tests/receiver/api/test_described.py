"""The API keeps to its own description, whatever is asked; schemathesis makes the requests."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.starting.cli import refund, store_run
from support.tapes.batches import span_of
from support.tapes.handmade import INSTANCE, ROOT, TRACE

from playhead_receiver.config.configuration import Access, Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch

TOKEN = "s3cret"
SETTINGS = Path(__file__).parent / "schemathesis.toml"
KNOWN = f"""
[parameters]
"path.trace_id" = "{TRACE.hex()}"
"path.span_id" = "{ROOT:016x}"
"path.run" = "refund-1"
"path.instance" = "{INSTANCE.hex()}"
"query.left" = "refund-1"
"query.right" = "last"
"query.wait_s" = 0
"""
"""Names of what is there, so that answers have something in them."""
STREAM = "/v1/live"
"""Does not end; tests of its own ask it."""


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    store_run(tmp_path, refund())
    with Receiver(
        tmp_path,
        Configuration(Addresses(http_port=0, grpc_port=None, query_port=0), Access(token=TOKEN)),
    ) as running:
        for number in range(1, 4):
            running.store.commit(
                Batch([span_of(bytes([number]) * 16, 1, gen_ai__operation__name="chat")])
            )
        while running.store.index():
            pass
        yield running


def run_schemathesis(receiver: Receiver, folder: Path, known: str, *options: str) -> None:
    settings = folder / "schemathesis.toml"
    settings.write_text(SETTINGS.read_text() + known)
    words = [
        *("-m", "schemathesis.cli", "--config-file", str(settings)),
        *("run", f"{receiver.query_endpoint}/openapi.json"),
        *("--checks", "all", "--exclude-path", STREAM, "--continue-on-failure", "--no-color"),
        *("--request-timeout", "60"),
        *("-H", f"Authorization: Bearer {TOKEN}", *options),
    ]
    done = subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True)
    print(done.stdout[-20_000:], done.stderr[-2000:])
    assert done.returncode == 0


KEEPING = ("--exclude-method", "DELETE")
PUT_RIGHT = ("--exclude-checks", "negative_data_rejection")
"""`KNOWN` puts a known name in the place of a wrong one: that is answered. "any" has this check."""


def test_answers_are_as_described(receiver: Receiver, tmp_path: Path):
    options = ("--phases", "fuzzing", "-n", "4", "--seed", "1")
    run_schemathesis(receiver, tmp_path, KNOWN, *KEEPING, *options)


@pytest.mark.acceptance
@pytest.mark.parametrize("known", [KNOWN, ""], ids=["known", "any"])
def test_answers_are_as_described_however_they_follow_each_other(
    receiver: Receiver, tmp_path: Path, known: str
):
    options = ("-n", "250", "--seed", "1")
    run_schemathesis(receiver, tmp_path, known, *((*KEEPING, *PUT_RIGHT) if known else ()), *options)
