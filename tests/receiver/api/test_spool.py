"""What waits in the spool of the receiver's machine."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from support.tapes.spools import undelivered

from playhead_core.settings import Settings
from playhead_receiver.auth import TokenBook
from playhead_receiver.auth.database import AccessFile
from playhead_receiver.config.configuration import Access, Addresses, Configuration
from playhead_receiver.server import Receiver

ADDRESSES = Addresses(http_port=0, grpc_port=None, query_port=0)


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[Settings]:
    with undelivered(tmp_path / "spool") as settings:
        yield settings


def test_what_an_agent_here_cannot_deliver_is_told(waiting: Settings, tmp_path: Path):
    refused = Path(waiting.spool_dir) / "rejected"
    refused.mkdir(parents=True)
    (refused / "1.txt").write_text("no")
    with Receiver(tmp_path / "data", Configuration(ADDRESSES, agents=waiting)) as receiver:
        found = httpx.get(f"{receiver.query_endpoint}/v1/spool").json()
    assert (found["machine"], found["refused"]) == (socket.gethostname(), 1)
    [one] = found["undelivered"]
    assert len(one.pop("instance")) == 32 and one.pop("size_bytes") > 0
    assert one == {"agent": "refund", "pid": os.getpid(), "alive": True, "facts": 3, "spans": 0}


def test_a_spool_is_of_the_data_folders_own_tenant(waiting: Settings, tmp_path: Path):
    file = AccessFile(tmp_path / "data")
    tokens = {name: TokenBook(file).create("who", ["read"], tenant=name)[1] for name in ("", "others")}
    file.close()
    told = Configuration(ADDRESSES, Access(guarded=True), agents=waiting)
    with Receiver(tmp_path / "data", told) as receiver:
        found = {
            tenant: httpx.get(
                f"{receiver.query_endpoint}/v1/spool", headers={"authorization": f"Bearer {token}"}
            ).json()
            for tenant, token in tokens.items()
        }
    assert len(found[""]["undelivered"]) == 1
    assert found["others"] == {"machine": None, "undelivered": [], "refused": 0}
