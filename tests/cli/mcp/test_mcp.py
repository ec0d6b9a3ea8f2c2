"""Runs for agents: the MCP server, asked by the official client over stdio."""

import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import ClientSession, StdioServerParameters, stdio_client
from support.starting.cli import refund, store_run
from support.tapes.batches import span_of

from playhead_receiver.auth import TokenBook
from playhead_receiver.auth.database import AccessFile
from playhead_receiver.config.configuration import Access, Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch
from playhead_semconv import attributes as a

TRACE = b"m" * 16
SAID = (
    '[{"role":"user","parts":[{"type":"text","content":"where is order 81?"}]},'
    '{"role":"assistant","parts":[{"type":"tool_call","id":"1","name":"look","arguments":{"n":81}}]}]'
)


def ask(data_dir: Path, calls: list[tuple[str, dict[str, Any]]], token: str = "") -> list[str]:
    """What the tools answer, one after the other; first their names."""
    words = ["-m", "playhead_cli", "mcp", "--no-config", "--data-dir", str(data_dir)]
    server = StdioServerParameters(
        command=sys.executable, args=words, env={"PLAYHEAD_TOKEN": token} if token else None
    )
    answers: list[str] = []

    async def talk() -> None:
        async with stdio_client(server) as streams, ClientSession(*streams[:2]) as session:
            await session.initialize()
            tools = (await session.list_tools()).tools
            assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
            answers.append(" ".join(tool.name for tool in tools))
            for name, arguments in calls:
                result = await session.call_tool(name, arguments)
                text = "".join(getattr(part, "text", "") for part in result.content)
                answers.append(f"error: {text}" if result.is_error else text)

    with anyio.from_thread.start_blocking_portal() as portal:
        portal.call(talk)
    return answers


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    store_run(tmp_path, refund())
    chat = {a.GEN_AI_OPERATION_NAME: "chat", a.GEN_AI_INPUT_MESSAGES: SAID}
    with Receiver(tmp_path, Configuration(Addresses(http_port=0, grpc_port=None))) as receiver:
        receiver.store.commit(Batch([span_of(TRACE, 1, service="helper", text="x" * 9000, **chat)]))
        while receiver.store.index():
            pass
    return tmp_path


def test_an_agent_reads_runs_where_no_receiver_runs(data_dir: Path):
    span = f"{1:016x}"
    tools, runs, failed, tree, messages, whole, found, sums, same, unknown = ask(
        data_dir,
        [
            ("list_runs", {}),
            ("list_runs", {"query": "status:failure"}),
            ("show_run", {"run": "refund-1", "limit": 5}),
            ("show_messages", {"run": "helper-1", "span_id": span}),
            ("show_span", {"run": "helper-1", "span_id": span, "longest": 100}),
            ("search", {"query": '"order 81" agent:helper'}),
            ("sum_up", {"by": "agent"}),
            ("compare_runs", {"left": "refund-1", "right": "refund-1"}),
            ("show_run", {"run": "nobody-1"}),
        ],
    )
    assert tools.split()[:3] == ["list_runs", "show_run", "show_messages"]
    assert [line.split()[0] for line in runs.splitlines()] == ["refund-1", "helper-1"]
    assert failed.startswith("refund-1 failure ") and "11 steps, 1 error, 4068+322 tokens" in failed
    lines = tree.splitlines()
    assert len(lines) == 7 and lines[1].split()[:3] == ["00000000000000a0", "run", "agent.py"]
    assert lines[2].startswith("  ") and lines[-1] == "(14 more: offset=5)"
    assert messages.splitlines() == [
        "user: where is order 81?",
        'assistant: calls look({"n": 81})',
    ]
    assert "…[8900 characters]…" in whole
    assert found.startswith(f"helper-1:1 {span} user: ")
    assert [line.split(":")[0] for line in sums.splitlines()] == ["all", "helper", "refund"]
    total, helper, _ = sums.splitlines()
    assert "tokens, $0.01+, p50 " in total and "0+0 tokens" in helper
    assert "4068+322 tokens, gpt-4o, $0.01+, " in failed
    assert same == "refund-1 and refund-1 are identical in 11 steps"
    assert unknown.startswith("error: ") and 'no run is called "nobody-1"' in unknown


def test_an_agent_reads_urls_bodies_and_all_differences(data_dir: Path):
    made = refund(b"d" * 16, b"e" * 16)
    url = {a.HTTP_REQUEST_METHOD: "POST", a.URL_FULL: "http://shop/orders/81?x=1"}
    asked = made.begin("POST", kind=3, **url)
    made.exchange(
        "POST http://shop/orders/81?x=1", b'{"order": 81}', (b'{"tot', b'al": 490}'), span=asked
    )
    made.finish(asked, **{a.HTTP_RESPONSE_STATUS_CODE: 200})
    made.chat(b'{"model":"gpt-4.1"}', (b"\xff\xfe",))
    assert store_run(data_dir, made) == "refund-2"
    span = f"{asked:016x}"
    _, tree, both, answer, above, differing, second = ask(
        data_dir,
        [
            ("show_run", {"run": "refund-2"}),
            ("show_bodies", {"run": "refund-2", "span_id": span}),
            ("show_bodies", {"run": "refund-2", "span_id": span, "part": "response"}),
            ("show_bodies", {"run": "refund-2", "span_id": f"{0xA0:016x}", "part": "response"}),
            ("compare_runs", {"left": "refund-1", "right": "refund-2"}),
            ("compare_runs", {"left": "refund-1", "right": "refund-2", "offset": 1, "limit": 1}),
        ],
    )
    [line] = [line for line in tree.splitlines() if span in line]
    assert line.split()[:4] == [span, "POST", "http://shop/orders/81?x=1", "200"]
    assert both.splitlines() == [
        "main#7 POST http://shop/orders/81?x=1",
        'asked: {"order": 81}',
        "answered 200",
        "answer header content-type: application/json",
        'answer: {"total": 490}',
        "end: complete",
    ]
    assert answer.splitlines() == [line for line in both.splitlines() if "asked" not in line]
    assert len([line for line in above.splitlines() if line.startswith("main#")]) == 9
    assert "answer (base64): //4=" in above
    lines = differing.splitlines()
    assert lines[0].startswith("refund-1 (-) and refund-2 (+): 2 differences; same steps: 1, 2, ")
    assert lines[1] == "step –→12 POST /orders/81: added"
    assert [line for line in lines if line.startswith("step ")][1].startswith("step –→13 chat")
    assert second.splitlines()[1].startswith("step –→13 chat")


def test_an_agent_reads_what_a_run_means(data_dir: Path):
    _, means, spent, origins, other = ask(
        data_dir,
        [
            ("show_findings", {"run": "refund-1"}),
            ("split_time", {"run": "refund-1"}),
            ("blame", {"run": "refund-1", "step": 1, "value": "81", "other_runs": True}),
            ("blame", {"run": "refund-1", "step": 99}),
        ],
    )
    assert means.splitlines()[:3] == [
        "status failed",
        "failure model/rate_limit at step 10, recovered",
        "failure tool/api_error at step 11",
    ]
    assert "state retrying (retry) for 200ms" in means
    assert spent.splitlines()[:3] == ["refund-1 6.5s, $0.01", "models: 1.3s", "tools: 1.0s"]
    assert "failure tool/api_error at step 11: 200ms" in spent
    assert origins.splitlines() == [
        "refund-1:1 chat gpt-4o",
        "  : 81",
        "    argument",
        "    message at step 1",
        "    also in helper-1",
    ]
    assert other.startswith("error: ") and "has no step 99" in other


def test_an_agent_reads_with_a_token_from_the_receiver_that_runs(data_dir: Path):
    file = AccessFile(data_dir)
    _, text = TokenBook(file).create("agent", ["read"])
    file.close()
    with Receiver(
        data_dir,
        Configuration(Addresses(http_port=0, grpc_port=None, query_port=0), Access(guarded=True)),
    ):
        assert ask(data_dir, [("list_runs", {})], text)[1].startswith("refund-1 ")
        assert "token is missing or wrong" in ask(data_dir, [("list_runs", {})], text + "x")[1]
        assert ask(data_dir, [("list_runs", {})])[1].startswith("refund-1 ")  # as the folder's owner
