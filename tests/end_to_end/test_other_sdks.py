"""SDKs without a funnel of ours, the newest of each: the wire tells what their calls mean."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.home import Home
from support.scripted import Reply, ScriptedServer, json_reply, openai_chat

PLAIN = json_reply(openai_chat.completion("Hi there", model="m-1"))
BUSY = json_reply({"error": {"message": "Later", "code": 503, "status": "UNAVAILABLE"}}, 503)
GEMINI = {
    "candidates": [
        {"content": {"role": "model", "parts": [{"text": "Hi there"}]}, "finishReason": "STOP"}
    ],
    "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2},
    "modelVersion": "m-1",
}
COHERE = {
    "id": "c",
    "finish_reason": "COMPLETE",
    "message": {"role": "assistant", "content": [{"type": "text", "text": "Hi there"}]},
    "usage": {
        "billed_units": {"input_tokens": 3, "output_tokens": 2},
        "tokens": {"input_tokens": 3, "output_tokens": 2},
    },
}
OLLAMA = {
    "model": "m-1",
    "created_at": "2026-01-01T00:00:00Z",
    "message": {"role": "assistant", "content": "Hi there"},
    "done": True,
    "done_reason": "stop",
    "prompt_eval_count": 3,
    "eval_count": 2,
}

SDKS: dict[str, tuple[str, list[Reply], str, int]] = {
    "google-genai": (
        """
from google import genai
from google.genai import types
retry = types.HttpRetryOptions(attempts=2, initial_delay=0.01, max_delay=0.01)
client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=url, retry_options=retry))
print(client.models.generate_content(model="m-1", contents="Hello").text)
""",
        [BUSY, json_reply(GEMINI)],
        "generate_content m-1",
        2,
    ),
    "mistralai": (
        """
from mistralai.client import Mistral
client = Mistral(api_key="k", server_url=url)
print(client.chat.complete(model="m-1", messages=messages).choices[0].message.content)
""",
        [PLAIN],
        "chat m-1",
        1,
    ),
    "cohere": (
        """
import cohere
client = cohere.ClientV2(api_key="k", base_url=url)
print(client.chat(model="m-1", messages=messages).message.content[0].text)
""",
        [json_reply(COHERE)],
        "chat m-1",
        1,
    ),
    "ollama": (
        """
import ollama
print(ollama.Client(host=url).chat(model="m-1", messages=messages).message.content)
""",
        [json_reply(OLLAMA)],
        "chat m-1",
        1,
    ),
    "groq": (
        """
import groq
client = groq.Groq(api_key="k", base_url=url)
print(client.chat.completions.create(model="m-1", messages=messages).choices[0].message.content)
""",
        [json_reply({"error": {"message": "Later"}}, 429, {"retry-after-ms": "1"}), PLAIN],
        "chat m-1",
        2,
    ),
    "huggingface_hub": (
        """
from huggingface_hub import InferenceClient
client = InferenceClient(base_url=url, api_key="k")
print(client.chat_completion(messages, model="m-1").choices[0].message.content)
""",
        [PLAIN],
        "chat m-1",
        1,
    ),
}
"""Name of the distribution → program, answers, name of the call, attempts."""

HEAD = """
import sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[2])
url, messages = sys.argv[1], [{"role": "user", "content": "Hello"}]
"""


@pytest.mark.acceptance
@pytest.mark.timeout(600)
@pytest.mark.parametrize("sdk", SDKS)
def test_calls_of_an_sdk_without_a_funnel(tmp_path: Path, sdk: str):
    program, replies, name, attempts = SDKS[sdk]
    libraries = tmp_path / "libraries"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "-q", "--target"]
    subprocess.run([*pip, str(libraries), sdk], check=True, capture_output=True)
    home = Home(tmp_path, {})
    script = tmp_path / "agent.py"
    script.write_text(HEAD + program)
    with ScriptedServer() as server:
        server.script(replies)
        done = home.playhead("record", script, server.url, libraries)
    assert (done.returncode, done.stdout) == (0, "Hi there\n"), done.stderr
    home.playhead("rederive")
    (run,) = home.runs()
    assert run["models"] == ["m-1"]
    assert run["input_tokens"] > 0 and run["output_tokens"] > 0
    shown: Any = json.loads(home.playhead("show", "last", "--json").stdout)
    (step,) = [step for step in shown["steps"] if step["name"] == name]
    assert step["attempts"] == attempts
    status, report = home.report("last")
    assert (status, report["verdict"]) == (0, "identical")
