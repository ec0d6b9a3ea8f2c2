"""What comes in is seen on the pages at once, with 64 runs going on."""

import itertools
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.pages.chromium import Page
from support.pages.measures import note, share
from support.tapes.handmade import HandMade

from playhead_core.facts import Content, Delivery
from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch, Store
from playhead_semconv import attributes as a
from playhead_semconv import events as e

pytestmark = pytest.mark.browser

LIVE = 64
REST_S = 1 / 64
"""Between two commits of other runs: each of them has one a second."""
BEAT_NS = 10**9
"""Between two signs of life of a run that does nothing else, as programs send them."""
ALL = pytest.mark.acceptance

WATCHING = """(() => {
  window.seen = {};
  const look = () => requestAnimationFrame(() => {
    const steps = STEPS;
    if (steps !== undefined && !(steps in window.seen))
      window.seen[steps] = performance.timeOrigin + performance.now();
  });
  new MutationObserver(look).observe(
    document.body, {subtree: true, childList: true, characterData: true});
  look();
})()"""
VIEWS = {
    "runs": (
        "/",
        "[...document.querySelectorAll('main > table tbody tr')]"
        ".find(row => row.cells[0].textContent.trim() === NAME)"
        "?.querySelector('[data-column=steps]').textContent.trim()",
    ),
    "run": (
        "/?run=NAME",
        r"/(\d+) steps/.exec(document.querySelector('main.run > .bar')?.textContent)?.[1]",
    ),
}


AGENT = "document.querySelector('.agent')"
"""The newest agent of the live view."""


class Growing:
    """A run that goes on: each call of it is committed at once."""

    def __init__(self, store: Store, number: int) -> None:
        self._store = store
        self._made = HandMade(bytes([9, number]) * 8, bytes([number + 1]) * 16)
        self._made.at_ns = time.time_ns()
        self._made.start()
        self._facts = self._spans = 0
        self.steps = 0
        self.is_talking = False
        self._commit()
        self.name = store.resolve(self._made.trace_id.hex()).name

    def call(self) -> float:
        """Commit a call of a model, or a sign of life. When it was acknowledged, in ms since 1970."""
        now_ns = time.time_ns()
        if self.is_talking and now_ns - self._made.at_ns < BEAT_NS:
            return 0.0
        self._made.at_ns = now_ns
        if self.is_talking:
            self._made.fact(e.PLAYHEAD_PROCESS_HEARTBEAT)
        else:
            self._made.chat()
        self.steps += 1
        self._commit()
        return time.time() * 1000

    def talk(self, text: str) -> None:
        """Begin a call whose answer stops after some words."""
        made, self.is_talking = self._made, True
        made.at_ns = time.time_ns()
        asks = {a.GEN_AI_OPERATION_NAME: "chat", a.GEN_AI_REQUEST_MODEL: "gpt-4o"}
        call = made.begin("chat gpt-4o", kind=3, **asks)
        http = made.begin("POST", parent=call, kind=3, **{a.HTTP_REQUEST_METHOD: "POST"})
        asked = b'{"model": "gpt-4o", "stream": true, "messages": [{"role": "user", "content": "hi"}]}'
        exchange = made.exchange(request=asked, span=http, answered=False)
        head = {
            a.HTTP_RESPONSE_STATUS_CODE: 200,
            a.PLAYHEAD_HTTP_HEADERS: ["content-type", "text/event-stream"],
        }
        chunk = {"model": "gpt-4o", "choices": [{"index": 0, "delta": {"content": text}}]}
        body = Content.chunk(f"data: {json.dumps(chunk)}\n\n".encode())
        of_call = {"span": http, "exchange": exchange}
        made.fact(e.PLAYHEAD_EXCHANGE_RESPONSE, delivery=Delivery(900, 0), attributes=head, **of_call)
        made.fact(e.PLAYHEAD_EXCHANGE_DATA, delivery=Delivery(901, 0), body=body, **of_call)
        self._commit()

    def _commit(self) -> None:
        made = self._made
        self._store.commit(Batch(made.spans[self._spans :], made.facts[self._facts :], {}))
        self._facts, self._spans = len(made.facts), len(made.spans)


@contextmanager
def going_on(runs: list[Growing]) -> Iterator[None]:
    """Let all runs go on beside what is done here."""
    over = threading.Event()

    def work() -> None:
        for run in itertools.cycle(runs):
            if over.wait(REST_S):
                return
            run.call()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("count", [10, pytest.param(100, marks=ALL)])
@pytest.mark.parametrize("view", VIEWS)
def test_what_is_committed_is_seen_while_64_runs_go_on(
    page: Page, tmp_path: Path, view: str, count: int
):
    address, steps = VIEWS[view]
    with Receiver(
        tmp_path / "data", Configuration(Addresses(http_port=0, grpc_port=None, query_port=0))
    ) as receiver:
        *others, shown = [Growing(receiver.store, number) for number in range(LIVE)]
        with going_on(others):
            shown.call()
            page.open(receiver.query_endpoint + address.replace("NAME", shown.name))
            page.run(WATCHING.replace("STEPS", steps.replace("NAME", json.dumps(shown.name))))
            page.wait("'1' in window.seen")
            took: list[float] = []
            for _ in range(count):
                committed_ms = shown.call()
                page.wait(f"'{shown.steps}' in window.seen")
                took.append(page.run(f"window.seen[{shown.steps}]") - committed_ms)
        note(f"commit to pixel, {view}", {"p50_ms": share(took, 0.5), "p95_ms": share(took, 0.95)})
        assert page.complaints == []


def test_the_live_view_shows_what_each_agent_does_and_says(page: Page, tmp_path: Path):
    addresses = Addresses(http_port=0, grpc_port=None, query_port=0)
    with Receiver(tmp_path / "data", Configuration(addresses)) as receiver:
        runs = [Growing(receiver.store, number) for number in range(2)]
        for run, text in zip(runs, ("Another answer", "Hello from the stream"), strict=True):
            run.talk(text)
        with going_on(runs):
            page.open(f"{receiver.query_endpoint}/?view=live", ".agent")
            page.wait("document.querySelectorAll('.agent').length === 2")
            page.wait(f"{AGENT}.innerText.includes('Hello from the stream')")
            page.wait(f"{AGENT}.innerText.includes('receives from gpt-4o')")
        assert page.complaints == []
