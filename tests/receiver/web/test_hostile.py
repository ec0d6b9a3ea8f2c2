"""What is recorded is text on every page: nothing of it runs, and nothing of it is fetched."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from support.batches import span_of

from playhead_receiver.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_receiver.store import Batch

from .chromium import Page
from .views import VIEWS

pytestmark = pytest.mark.browser

HOSTILE = [
    "<img src=http://203.0.113.9/x.png onerror=alert(1)>",
    "<svg onload=alert(1)><script>alert(1)</script></svg>",
    "![a](http://203.0.113.9/m.png) [b](javascript:alert(1))",
    "\u202eright to left\u2066",
    "\x1b[31mred\x07\x00",
    '"><iframe src=//203.0.113.9></iframe>',
    "${alert(1)} {{constructor.constructor('alert(1)')()}}",
]


def test_hostile_content_is_text_in_every_view(page: Page, tmp_path: Path):
    with Receiver(
        tmp_path / "data", Configuration(Addresses(http_port=0, grpc_port=None, query_port=0))
    ) as receiver:
        trace = b"\x07" * 16
        spans = [span_of(trace, 1, name=HOSTILE[0], service=HOSTILE[1])]
        for number, text in enumerate(HOSTILE, 2):
            said: Any = httpx.Request("POST", "http://a", json=[_message(text)]).content.decode()
            spans.append(
                span_of(
                    trace,
                    number,
                    parent=1,
                    name=text,
                    error=True,
                    gen_ai__operation__name="chat",
                    gen_ai__request__model=text,
                    gen_ai__input__messages=said,
                    gen_ai__output__messages=said,
                )
            )
        receiver.store.commit(Batch(spans))
        while receiver.store.index():
            pass
        before = len(page.requested)
        for view, (address, _) in VIEWS.items():
            at = (
                address.replace("refund-1", trace.hex())
                .replace("%22order%2081%22", "left")
                .replace("after=11", "after=1")
            )
            page.open(receiver.query_endpoint + at)
            page.wait("document.querySelector('[role=status]')?.textContent !== 'loading'")
            page.wait("!document.body.innerText.includes('loading')")
            assert (
                page.run(
                    "document.querySelectorAll('main img, main svg, main iframe, main script').length"
                )
                == 0
            )
            assert page.complaints == [], view
        page.open(f"{receiver.query_endpoint}/?view=transcript&run={trace.hex()}", "article")
        said = page.text
        for text in (HOSTILE[0], HOSTILE[1], HOSTILE[2], "\\u202eright to left", "\\u001b[31mred"):
            assert text in said
        asked = {one.split("/")[2] for one in page.requested[before:]}
        assert asked == {receiver.query_endpoint.split("/")[2]}


def _message(text: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"type": "text", "content": text}], "finish_reason": "stop"}
