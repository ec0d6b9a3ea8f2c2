"""`playhead like RUN:STEP` lists who read the same document, and who acted on it."""

from __future__ import annotations

import json

import httpx
from receiver.queries.test_same_content import POISONED, document, made
from support.starting.cli import CommandLine, store_run

from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver


def test_those_that_acted_on_a_document_come_first(playhead: CommandLine):
    for number in range(1, 5):
        text = document(9) if number == 4 else POISONED + "\x1b[2J"
        store_run(playhead.data_dir, made(number, text, number == 3))
    shown = playhead("like", "refund-1:1")
    first = next(at for at, line in enumerate(shown.lines) if line.startswith("1.1 search_docs"))
    assert shown.lines[first] == "1.1 search_docs  also read by 2 other runs, 1 acted on it"
    assert [line.split() for line in shown.lines[first + 2 : first + 4]] == [
        "refund-3 success 1.1 search_docs acted: 2.1 send_email eve@evil.example".split(),
        "refund-2 success 1.1 search_docs".split(),
    ]
    assert "\x1b" not in shown.out
    printed = json.loads(playhead("like", "refund-1", "--json").out)
    assert [one["name"] for one in printed["same_content"] if one["acted"]] == ["refund-3"]
    assert {one["name"] for one in printed["like"]} == {"refund-2", "refund-3", "refund-4"}
    ports = Configuration(Addresses(http_port=0, grpc_port=None, query_port=0))
    with Receiver(playhead.data_dir, ports) as receiver:  # the index is complete since the first command
        with httpx.Client(base_url=receiver.query_endpoint, timeout=60) as api:
            assert api.get("/v1/runs/refund-1/like").json() == printed
            at_step = api.get("/v1/runs/refund-1/like?step=1").json()
    assert (at_step["like"], at_step["same_content"]) == ([], printed["same_content"])
