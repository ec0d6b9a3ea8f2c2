"""What is recorded is text on every page: nothing of it runs, and nothing of it is fetched."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.answers.spoken import answer, request
from support.pages.chromium import Page
from support.pages.views import VIEWS
from support.tapes.handmade import HandMade

from playhead_core.facts import Content, ErrorRecord, digest_of
from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch
from playhead_semconv import attributes as a
from playhead_semconv import events as e

pytestmark = [pytest.mark.browser, pytest.mark.timeout(400)]

ELSEWHERE = "203.0.113.9"
LONG = 10_000_000
HOSTILE = [
    f"<img src=http://{ELSEWHERE}/x.png onerror=alert(1)>",
    "<svg onload=alert(1)><script>alert(1)</script></svg>",
    f"![a](http://{ELSEWHERE}/m.png) [b](javascript:alert(1))",
    "javascript:alert(1)",
    "\u202eright to left\u2066 \u200b\ufeff\U000e0041",
    "\x1b[31mred\x07 \x1b]8;;http://203.0.113.9\x07link\x1b]8;;\x07\x00 nothing",
    f'"><iframe src=//{ELSEWHERE}></iframe><base href=//{ELSEWHERE}>',
    "${alert(1)} {{constructor.constructor('alert(1)')()}}",
    f"<meta http-equiv=refresh content='0;url=http://{ELSEWHERE}'><form action=//{ELSEWHERE}>",
    "</script><style>@import '//203.0.113.9/a.css'</style>",
    "__proto__",
]
SEEN = [
    *HOSTILE[:4],
    "\\u202eright to left\\u2066 \\u200b\\ufeff\\udb40\\udc41",
    "\\u001b[31mred\\u0007",
    "\\u0000 nothing",
    *HOSTILE[6:],
]
"""As a person reads them: what hides or commands is spelt out."""
ANYTHING_HIDDEN = (
    r"/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
    r"|[\u{e0000}-\u{e007f}]|[\u{d800}-\u{dfff}]/u.test(document.documentElement.outerHTML)"
)
MADE = (
    "document.querySelectorAll("
    "'img, svg:not(.lucide):not(.flow-graph), iframe, base, meta[http-equiv], main script, main style, '"
    "+ 'main form[action], [onerror], [onload]')"
)


def hostile_run(number: int) -> HandMade:
    """A run that says the corpus wherever a program or a provider can say something."""
    made = HandMade(bytes([number]) * 16, bytes([number + 64]) * 16)
    made.at_ns = time.time_ns() - 3_600_000_000_000
    made.start(**{a.PLAYHEAD_RUN_AGENT: HOSTILE[0]})
    history: list[dict[str, Any]] = []
    for place, text in enumerate(HOSTILE):
        history.append({"role": "user", "content": text, "name": text})
        call = {"id": text, "type": "function", "function": {"name": text, "arguments": text}}
        body = answer(content=text, tool_calls=[call], reasoning_content=text)
        number = made.begin(text, kind=3, **{a.GEN_AI_OPERATION_NAME: "chat", a.GEN_AI_TOOL_NAME: text})
        attempt = made.begin(text, parent=number, kind=3, **{a.HTTP_REQUEST_METHOD: text})
        made.exchange(
            f"POST http://provider/v1/chat/completions?{text}",
            request(*history),
            (body,),
            span=attempt,
            headers=(text, text),
            how="error" if place % 2 else "complete",
            error=ErrorRecord(text, text, text) if place % 2 else None,
        )
        made.finish(attempt, error=text)
        said = json.dumps([{"role": text, "parts": [{"type": text, "content": text}, {"type": "text"}]}])
        made.finish(
            number,
            error=text if place % 2 else "",
            **{
                a.GEN_AI_REQUEST_MODEL: text,
                a.ERROR_TYPE: text,
                text: text,
                a.GEN_AI_OUTPUT_MESSAGES: said,
                a.GEN_AI_TOOL_DEFINITIONS: said,
            },
        )
        state = json.dumps({text: [text]}).encode()
        named = {a.PLAYHEAD_STATE_NAME: text, a.PLAYHEAD_STATE_DIGEST: digest_of(state).hex()}
        made.fact(e.PLAYHEAD_STATE, attributes=named, body=Content.of(state))
        made.tool(text, json.dumps({text: text}), error=text)
        made.say(text + "\n").say(text + "\n", "stderr")
    lone = b'{"model": "m", "messages": [{"role": "user", "content": "a \\ud800 b \\udfff"}]}'
    made.chat(lone, (b'{"id": "\\ud83d"}', b"\xff\xfe\x00"))
    made.chat(request({"role": "user", "content": "x" * LONG}), (answer(content="y" * LONG),))
    made.say("z" * LONG)
    return made.exit()


@pytest.fixture
def hostile(tmp_path: Path) -> Iterator[tuple[Receiver, str, str]]:
    """A receiver with two such runs, and their trace ids."""
    addresses = Addresses(http_port=0, grpc_port=None, query_port=0)
    with Receiver(tmp_path / "data", Configuration(addresses)) as receiver:
        made = [hostile_run(number) for number in (1, 2)]
        for one in made:
            receiver.store.commit(Batch(one.spans, one.facts, {}))
        while receiver.store.index():
            pass
        yield receiver, made[0].trace_id.hex(), made[1].trace_id.hex()


def test_hostile_content_is_text_in_every_view(page: Page, hostile: tuple[Receiver, str, str]):
    receiver, run, other = hostile
    addresses = [
        address.replace("refund-1", run).replace("right=last", f"right={other}")
        for address, _ in VIEWS.values()
    ]
    steps = len(HOSTILE) * 2 + 2
    addresses += [
        f"/?run={run}&step={step}&tab={tab}" for step in (1, 4, 9) for tab in ("messages", "raw")
    ]
    addresses += [f"/?run={run}&step={step}&tab=raw" for step in (steps - 1, steps)]
    addresses += [f"/?view=find&q={word}" for word in ("right", "onerror", "constructor")]
    addresses += [f"/?run={run}&find=alert", f"/?view=playhead&run={run}&after={steps}"]
    seen, marks = "", 0
    for address in addresses:
        page.open(receiver.query_endpoint + address)
        page.wait("document.querySelector('main')?.innerText.length > 3")
        page.wait(
            "![...document.querySelectorAll('[role=status]')].some(one => one.textContent === 'loading')"
        )
        page.run("document.querySelectorAll('main details').forEach(one => { one.open = true; })")
        page.wait("new Promise(done => requestAnimationFrame(() => setTimeout(() => done(true))))")
        assert page.complaints == [], address
        assert page.run(f"{MADE}.length") == 0, address
        assert not page.run(ANYTHING_HIDDEN), address
        seen += page.text
        marks += page.run("document.querySelectorAll('mark').length")
    assert marks > 0
    for text in SEEN:
        assert text in seen
    ours = receiver.query_endpoint.split("/")[2]
    assert {one.split("/")[2] for one in page.requested} == {ours}
    assert page.run("[...document.querySelectorAll('a')].every(one => one.origin === location.origin)")
