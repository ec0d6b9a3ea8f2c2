from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cli import refund, store_run

from playhead_receiver.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver

from .chromium import Page, chromium


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    """A receiver that has one run, refund-1, and can find what was said in it."""
    store_run(tmp_path / "data", refund())
    with Receiver(
        tmp_path / "data", Configuration(Addresses(http_port=0, grpc_port=None, query_port=0))
    ) as running:
        while running.store.index():
            pass
        yield running


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    with chromium(tmp_path / "profile") as opened:
        yield opened
