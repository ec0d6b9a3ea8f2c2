"""A recorded run that failed, and a fork of it."""

from collections.abc import Iterator

import pytest
from support.observed.asking import ASKING
from support.servers.scripted import Request, ScriptedServer, json_reply, openai_chat
from support.starting.home import Home

AGENT = f"""
import playhead
from opentelemetry import trace
{ASKING}
@playhead.tool
def search(q):
    return f"{{q}} is late"

@playhead.tool
def refund(order):
    raise LookupError("no order")

@playhead.step
def plan(goal):
    first = asked(f"plan {{goal}}")
    with trace.get_tracer("own").start_as_current_span("reading the list"):
        pass
    return search("order 81")

playhead.state({{"left": 3}}, name="budget")
print("begun", flush=True)
found = plan("the refund")
playhead.state({{"left": 2}}, name="budget")
print(asked(f"what now? {{found}}"))
try:
    refund(81)
except LookupError as problem:
    print(problem)
print(asked("say sorry [bold]to[/bold] them"))
"""


def answered(request: Request):
    return json_reply(openai_chat.completion(f"to {request.json['messages'][-1]['content']}"))


@pytest.fixture(scope="package")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """``agent-1``: five steps, the fourth failed; ``agent-2`` is forked from its third."""
    folder = tmp_path_factory.mktemp("browse")
    with ScriptedServer() as provider:
        provider.on("/v1/chat/completions", answered, repeat=True)
        made = Home(folder, {"OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": "k"})
        (folder / "agent.py").write_text(AGENT)
        done = made.playhead("record", "agent.py")
        assert done.returncode == 0, done.stderr
        forked = made.playhead("fork", "agent-1:3", "--edit", "request.messages[0].content=and now?")
        assert forked.returncode == 0, forked.stderr
        yield made
