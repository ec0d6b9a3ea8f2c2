from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.pages.chromium import Chromium, Page, chromium
from support.starting.cli import refund, store_run

from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver


@contextmanager
def with_refund(folder: Path) -> Iterator[Receiver]:
    """A receiver that has one run, refund-1, and can find what was said in it."""
    store_run(folder, refund())
    addresses = Addresses(http_port=0, grpc_port=None, query_port=0)
    with Receiver(folder, Configuration(addresses)) as running:
        while running.store.index():
            pass
        yield running


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    """`with_refund`, for tests that store something."""
    with with_refund(tmp_path / "data") as running:
        yield running


@pytest.fixture(scope="session")
def viewed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    """`with_refund`, for all tests that store nothing: starting one takes longer than most tests."""
    with with_refund(tmp_path_factory.mktemp("viewed") / "data") as running:
        yield running


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with chromium(tmp_path_factory.mktemp("chromium") / "profile") as started:
        yield started


@pytest.fixture
def page(browser: Chromium) -> Iterator[Page]:
    with browser.tab() as opened:
        yield opened
