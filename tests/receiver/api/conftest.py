from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from support.starting.cli import refund, store_run

from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    """A receiver that has one run, refund-1, and can find what was said in it."""
    store_run(tmp_path, refund())
    with Receiver(
        tmp_path, Configuration(Addresses(http_port=0, grpc_port=None, query_port=0))
    ) as running:
        while running.store.index():
            pass
        yield running


@pytest.fixture
def api(receiver: Receiver) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=receiver.query_endpoint, timeout=60) as client:
        yield client
