from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from support.starting.cli import refund, store_run

from playhead_receiver.config.configuration import Addresses, CompatibilityLimits, Configuration
from playhead_receiver.server import Receiver

LIMITS = CompatibilityLimits(jaeger_bytes=4096, tempo_bytes=2048, url="https://playhead.example")


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    """A receiver that has one run, refund-1, and cuts early."""
    store_run(tmp_path, refund())
    with Receiver(
        tmp_path, Configuration(Addresses(http_port=0, grpc_port=0, query_port=0), compatibility=LIMITS)
    ) as running:
        yield running


@pytest.fixture
def api(receiver: Receiver) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=receiver.query_endpoint, timeout=60) as client:
        yield client
