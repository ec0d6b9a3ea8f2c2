"""Who may look, and who may act."""

from pathlib import Path

import pytest
from support.cli import refund, store_run

from playhead_receiver.configuration import Access, Addresses, Configuration
from playhead_receiver.server import Receiver

from .chromium import Page

pytestmark = pytest.mark.browser


def test_a_token_is_taken_from_the_fragment_and_leaves_the_address(page: Page, tmp_path: Path):
    store_run(tmp_path / "data", refund())
    addresses = Addresses(http_port=0, grpc_port=None, query_port=0)
    with Receiver(
        tmp_path / "data", Configuration(addresses, Access(token="s3cret", guarded=True))
    ) as receiver:
        page.open(f"{receiver.query_endpoint}/", "[role=alert]")
        assert "token" in page.text
        assert "refund-1" not in page.text
        page.open("about:blank", "body")
        page.open(f"{receiver.query_endpoint}/#token=s3cret", "main tbody a")
        assert page.run("location.href") == f"{receiver.query_endpoint}/"
        page.open(f"{receiver.query_endpoint}/?run=refund-1", ".row")
