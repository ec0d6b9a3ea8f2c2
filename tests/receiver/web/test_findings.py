"""What a run means: its findings, the marks of its rows, its time, and its agents."""

import json
from typing import Any

import httpx
import pytest
from support.answers.spoken import answer, request
from support.pages.chromium import Page
from support.pages.views import PICTURES
from support.tapes.handmade import ROOT, HandMade

from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch
from playhead_semconv import attributes as a
from playhead_semconv import events as e

from .test_accessible import paint, violations

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=alert(1)>\u202e[a](javascript:alert(1))"
DECISION = {
    "question": HOSTILE,
    "options": ["search", "refund"],
    "chosen": "search",
    "reason": "the order is unknown",
    "confidence": 0.8,
    "rejected": ["refund"],
    "rejected_reasons": ["no order yet"],
}
SECTIONS = """Object.fromEntries([...document.querySelectorAll('.findings .card')].map(
  one => [one.querySelector('h2').textContent, one.querySelector('.in').innerText]))"""

CELLS = """[...document.querySelectorAll('table[aria-label="NAME"] tbody tr')].map(
  row => [...row.children].map(cell => cell.innerText))"""


def reported(made: HandMade, event: str, **fields: Any) -> None:
    made.fact(event, attributes={f"{event}.{name}": value for name, value in fields.items()})


def lost_order() -> HandMade:
    """A run that says what it wants and decides, searches in a circle, and fails at its refund."""
    made = HandMade(b"\x05" * 16, b"\x06" * 16).start()
    reported(made, e.PLAYHEAD_GOAL, text="refund order 81", type="support")
    reported(made, e.PLAYHEAD_PHASE, name="planning")
    history: list[Any] = [{"role": "user", "content": "order 81?"}]
    for number in range(4):
        function = {"name": "search", "arguments": json.dumps({"q": "order 81"})}
        calls = [{"id": f"c{number}", "type": "function", "function": function}]
        body = answer(content="I look it up.", tool_calls=calls)
        made.chat(request(*history), (body,))
        if not number:
            reported(made, e.PLAYHEAD_DECISION, **DECISION)
        made.tool("search", '{"q": "order 81"}')
        history += [json.loads(body)["choices"][0]["message"]]
        history += [{"role": "tool", "tool_call_id": f"c{number}", "content": "[81, 82]"}]
    reported(made, e.PLAYHEAD_PHASE, name="executing", previous="planning", reason="enough is known")
    reported(made, e.PLAYHEAD_SIGNAL, type="fallback", code="cache", value=HOSTILE)
    reported(made, e.PLAYHEAD_MESSAGE, to="billing", kind="question", content=HOSTILE)
    made.tool("refund", "{}", error="ShopError: order 81 is refunded already")
    reported(made, e.PLAYHEAD_RESULT, value="not refunded")
    return made.exit(1)


def test_findings_lead_to_their_steps_and_mark_their_rows(page: Page, receiver: Receiver):
    made = lost_order()
    receiver.store.commit(Batch(made.spans, made.facts, {}))
    run = made.trace_id.hex()
    page.open(f"{receiver.query_endpoint}/?run={run}&step=findings", ".findings .card")
    found = page.run(SECTIONS)
    for section, texts in {
        "Goal and result": ("refund order 81", "failed", "not refunded"),
        "Failures (1)": ("api error", "refund", "not recovered", "ShopError", "derived"),
        "Loops (1)": ("search", "4"),
        "States (2)": ("planning", "executing", "enough is known", "reported"),
        "Signals (1)": ("fallback", "reported"),
        "Messages to agents (1)": ("to billing", "question"),
    }.items():
        for text in texts:
            assert text in found[section], (section, text, found)
    [decisions] = [text for section, text in found.items() if section.startswith("Decisions")]
    for text in ("the order is unknown", "confidence 80 %", "refund: no order yet", "reported"):
        assert text in decisions
    assert "<img src=x onerror=alert(1)>\\u202e" in decisions
    assert page.run("document.querySelectorAll('main img').length") == 0
    marks = "[...document.querySelectorAll('.row .finding')].map(one => one.title)"
    titles = page.run(marks)
    for title in ("loop: loop ×4", "decided: search", "state: planning", "failure: api error"):
        assert title in titles, titles
    assert violations(page) == []
    page.run("[...document.querySelectorAll('.findings td a')][0].click()")
    page.wait("location.search.endsWith('step=9')")
    page.wait("document.querySelector('.row[aria-selected=true]')?.textContent.includes('refund')")
    page.press("i")
    page.wait("document.querySelector('.findings') !== null")
    assert page.complaints == []


ORIGINS = """[...document.querySelectorAll('.origins tbody tr')].map(
  row => [...row.children].map(cell => cell.innerText.trim()))"""
ASK_ORIGINS = "document.querySelector('.origins button').click()"


def test_a_step_says_where_its_arguments_come_from(page: Page, receiver: Receiver):
    made = HandMade(b"\x0b" * 16, b"\x0c" * 16).start()
    question = {"role": "user", "content": "refund order 81-7"}

    def called(name: str, **arguments: str) -> bytes:
        function = {"name": name, "arguments": json.dumps(arguments)}
        calls = [{"id": f"of_{name}", "type": "function", "function": function}]
        return answer(content="I do it.", tool_calls=calls)

    first = called("look_up", order="81-7")
    made.chat(request(question), (first,))
    found = '{"customer": "C-5512", "total": "19.90 EUR"}'
    tool = {a.GEN_AI_OPERATION_NAME: "execute_tool", a.GEN_AI_TOOL_NAME: "look_up"}
    made.finish(made.begin("execute_tool look_up", **tool), **{a.GEN_AI_TOOL_CALL_RESULT: found})
    arguments = {"to": "C-5512", "why": HOSTILE}
    result = {"type": "tool_call_response", "id": "of_look_up", "response": found}
    call = {"type": "tool_call", "id": "of_refund", "name": "refund", "arguments": arguments}
    chat = made.begin("chat gpt-4o", kind=3, **{a.GEN_AI_OPERATION_NAME: "chat"})
    messages = {
        a.GEN_AI_INPUT_MESSAGES: json.dumps([{"role": "tool", "parts": [result]}]),
        a.GEN_AI_OUTPUT_MESSAGES: json.dumps([{"role": "assistant", "parts": [call]}]),
    }
    made.wait(1).finish(chat, **messages)
    made.tool("refund", json.dumps(arguments))
    made.exit()
    receiver.store.commit(Batch(made.spans, made.facts, {}))
    run = made.trace_id.hex()
    for step in (3, 4):
        page.open(f"{receiver.query_endpoint}/?run={run}&step={step}", ".origins button")
        assert page.run(ORIGINS) == []
        page.run(ASK_ORIGINS)
        page.wait("document.querySelector('.origins tbody tr') !== null")
        customer, why = page.run(ORIGINS)
        assert customer[0].endswith(" to") and customer[1] == "C-5512"
        assert customer[2].startswith("step 1.1 result look_up"), customer
        assert why[0].endswith(" why") and page.run("document.querySelectorAll('main img').length") == 0
        assert violations(page) == []
    page.run("document.querySelector('.origins td a').click()")
    page.wait("location.search.endsWith('step=1')")
    page.wait("document.querySelector('.row[aria-selected=true]')?.textContent.startsWith('1')")
    assert page.complaints == []


def delegated() -> HandMade:
    """A run that waits for a line, retries a call, and asks three agents with names of all kinds."""

    def step(name: str, parent: int, operation: str, **more: Any) -> int:
        return made.begin(name, parent=parent, **{a.GEN_AI_OPERATION_NAME: operation, **more})

    def agent(name: str, parent: int) -> int:
        return step(f"invoke_agent {name}", parent, "invoke_agent", **{a.GEN_AI_AGENT_NAME: name})

    def tool(name: str, parent: int) -> int:
        return step(f"execute_tool {name}", parent, "execute_tool", **{a.GEN_AI_TOOL_NAME: name})

    made = HandMade(b"\x07" * 16, b"\x08" * 16).start()
    made.exchange("input", kind="stdin")
    boss = agent("boss", ROOT)
    model = {a.GEN_AI_REQUEST_MODEL: "gpt-4o", a.GEN_AI_PROVIDER_NAME: "openai"}
    chat = step("chat gpt-4o", boss, "chat", **model)
    for number, seconds in enumerate((1, 2)):
        resent = {a.HTTP_REQUEST_RESEND_COUNT: number} if number else {}
        attempt = made.begin("POST", parent=chat, kind=3, **{a.HTTP_REQUEST_METHOD: "POST", **resent})
        made.wait(seconds).finish(attempt, error="" if number else "reset")
    made.finish(chat, **{a.GEN_AI_USAGE_INPUT_TOKENS: 812, a.GEN_AI_USAGE_OUTPUT_TOKENS: 64})
    ask = tool("ask", boss)
    worker = agent(HOSTILE, ask)
    lookup = tool(HOSTILE, worker)
    made.wait(5).finish(lookup)
    helper = agent("__proto__", worker)
    index = tool("index", helper)
    made.wait(1).finish(index)
    made.finish(helper, error="gone")
    for number in (worker, ask, boss):
        made.finish(number)
    return made.wait(1).exit()


def test_the_overview_shows_where_the_time_went_and_which_agents_asked_which(
    page: Page, receiver: Receiver
):
    made = delegated()
    receiver.store.commit(Batch(made.spans, made.facts, {}))
    run = made.trace_id.hex()
    api = f"{receiver.query_endpoint}/v1/runs/{run}"
    page.open(f"{receiver.query_endpoint}/?run={run}&step=overview", ".overview .graph .node")
    page.wait("document.querySelector('.legend[aria-label=\"parts of the time\"]') !== null")
    legend = page.run("[...document.querySelectorAll('.legend li')].map(one => one.innerText)")
    assert legend == [
        "models 2.0 s, 20 %",
        "tools 6.0 s, 59 %",
        "retries 1.0 s, 10 %",
        "waiting for a person 200 ms, 2 %",
        "own code 1.0 s, 10 %",
    ]
    time = httpx.get(f"{api}/time").json()
    widths = page.run("[...document.querySelectorAll('.states > span')].map(one => one.style.width)")
    assert [round(float(one.removesuffix("%"))) for one in widths] == [20, 59, 10, 2, 10]
    longest = page.run(CELLS.replace("NAME", "longest steps"))
    assert [row[0] for row in longest] == ["3", "1", "4", ""] and "input" in longest[-1][1]
    assert longest[1][1:] == ["chat gpt-4o model, boss critical path", "2.0 s", "1.0 s", "$0.0027"]
    path = "[...document.querySelectorAll('.path a')].map(one => one.innerText)"
    assert page.run(path) == time["critical_path"] == ["1", "3", "4"]

    [one, two, three] = page.run(CELLS.replace("NAME", "requests between agents"))
    seen = HOSTILE.replace("\u202e", "\\u202e")
    assert one == [seen, "__proto__", "call", "1", "1", "1.0 s", "step 4"]
    assert two == ["boss", f"{seen} bottleneck", "tool", "1", "", "6.0 s", "step 3"]
    assert three[:2] == ["refund", "boss"]
    assert page.run("document.querySelectorAll('.graph .node, .graph .edge').length") == 4 + 3
    slow = page.run("document.querySelector('.graph .node.slow').textContent")
    assert slow.endswith("5.0 s itself, bottleneck")
    assert page.run("document.querySelectorAll('main img').length") == 0

    assert violations(page) == []
    for scheme, width in (("dark", 1400), ("light", 700)):
        paint(page, scheme, width)
        assert violations(page, "color-contrast", "scrollable-region-focusable") == []
        assert page.run("document.documentElement.scrollWidth <= innerWidth")
        table = "document.querySelector('table[aria-label=\"requests between agents\"]')"
        page.run(f"{table}.rows[1].cells[0].textContent = 'a_name_without_spaces_'.repeat(8)")
        assert page.run(f"{table}.offsetWidth <= {table}.parentElement.clientWidth"), width
        page.photograph(PICTURES / f"agents-{width}-{scheme}.png")
    asked = [one.rpartition("/")[2] for one in page.requested]
    assert asked.count("time") == asked.count("agents") == 1
    page.run("document.querySelector('table[aria-label=\"requests between agents\"] a').click()")
    page.wait("document.querySelector('.row[aria-selected=true]')?.textContent.includes('index')")
    assert page.complaints == []
