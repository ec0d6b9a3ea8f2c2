from collections.abc import Iterator
from pathlib import Path

import pytest
from support.pages.chromium import Chromium, Page, chromium
from support.starting.cli import refund, store_run

from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver


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


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with chromium(tmp_path_factory.mktemp("chromium") / "profile") as started:
        yield started


@pytest.fixture
def page(browser: Chromium) -> Iterator[Page]:
    with browser.tab() as opened:
        yield opened
