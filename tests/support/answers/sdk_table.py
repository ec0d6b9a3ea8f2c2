"""SDKs that lie apart, and what a provider answers to each case of `support.sdks.cases`."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.answers.bedrock_answers import BedrockMessages, Converse, Messages
from support.answers.sdk_answers import (
    Answers,
    Chat,
    Cohere,
    Gemini,
    Mistral,
    Ollama,
    Responses,
    Said,
)
from support.sdks.cases import ABOUT, ASYNC, MODEL, SCHEMA, SYNC, TOOL
from support.servers.scripted import Gate, Reply

from playhead_semconv import attributes as a

APART = Path(sys.prefix, "apart-sdks")
"""Where they are installed; `tests/instrumentation/sdks/requirements.txt` names them."""


def surroundings(folder: Path) -> dict[str, str]:
    """Variables with which none of them looks around on the machine or the net."""
    known = folder / ".agent_harnesses.json"
    known.write_text('{"standardEnvVars": [], "harnesses": {}}', "utf-8")
    return {
        "HF_HOME": str(folder),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }


HI = Said("Hi there")
ANSWER = '{"city":"Oslo"}'
OSLO, ROME = ("c-1", {"city": "Oslo"}), ("c-2", {"city": "Rome"})
SAYS: dict[str, Said] = {
    "tools": Said(calls=(OSLO,)),
    "parallel": Said(calls=(OSLO, ROME)),
    "schema": Said(ANSWER),
    "refusal": Said("I cannot", refused=True),
    "reasoning": Said("Hi there", "Let me think"),
}
"""What the model says in a case; else `HI`."""

STREAMED = frozenset(
    ("stream", "parallel", "reasoning", "cut", "malformed", "abandoned", "async stream", "cancelled")
)
BROKEN = frozenset(("cut", "malformed", "abandoned", "cancelled"))
"""Cases whose stream the program gets no further than its first event."""
WANTS = {"tools": "tools", "parallel": "tools", "schema": "schema", "image": "image"}


@dataclass(frozen=True)
class Sdk:
    """One SDK on one wire, and what is its own."""

    adapter: str
    """``MODULE:CLASS`` in `support.sdks`."""
    answers: Answers
    operation: str = "chat"
    provider: str = ""
    wire: str = "openai.chat"
    asks: dict[str, Any] = field(default_factory=dict[str, Any])
    """What every request says beside model and messages."""
    told: dict[str, Any] = field(default_factory=dict[str, Any])
    """What every answer says of itself."""
    whole: dict[str, Any] = field(default_factory=dict[str, Any])
    """What an answer says that has come to its end, beside that."""
    first: dict[str, Any] = field(default_factory=dict[str, Any])
    """More attributes that a call has after the first part of its stream."""
    errors: tuple[str, str, str] = ("invalid", "invalid", "")
    """``error.type`` of a 400, a 500 and a timeout."""
    without: frozenset[str] = frozenset()
    """Cases that the SDK has no means for."""
    leaves: bool = False
    """Whether it may leave a stream when the message has ended, before what follows."""
    reads_on: bool = False
    """Whether it goes on reading after a malformed event."""
    image: dict[str, Any] = field(default_factory=lambda: {"mime_type": "image/png"})
    schema: dict[str, Any] = field(default_factory=lambda: {a.GEN_AI_OUTPUT_TYPE: "json"})
    """What a request for a structured answer says beside that."""
    begun: int = 1
    """So many events of a stream come before the program gets its first part."""

    @property
    def cases(self) -> list[str]:
        """Its cases, in order."""
        return [case for case in (*SYNC, *ASYNC) if case not in self.without]


NO_AGAIN = frozenset(("again",))
NO_ASYNC = frozenset(ASYNC)
BEGUN = {a.GEN_AI_OUTPUT_MESSAGES: '[{"role":"assistant","parts":[{"type":"text","content":"Hi"}]}]'}


def as_tool(tool: dict[str, str]) -> dict[str, Any]:
    """What a request says that asks for a structured answer as the arguments of this tool."""
    return {a.GEN_AI_TOOL_DEFINITIONS: [{"type": "function", **tool, "parameters": SCHEMA}]}


def chat(adapter: str, timeout: str, answers: Answers | None = None, **more: Any) -> Sdk:
    """An SDK of OpenAI's chat; ``timeout``: what it raises."""
    return Sdk(
        adapter,
        answers or Chat(),
        asks={a.OPENAI_API_TYPE: "chat_completions"},
        told={a.GEN_AI_RESPONSE_ID: "chatcmpl-1", a.GEN_AI_RESPONSE_MODEL: MODEL},
        whole={
            a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: 0,
            a.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS: 0,
        },
        first={a.GEN_AI_OUTPUT_MESSAGES: '[{"role":"assistant","parts":[]}]'},
        errors=("invalid", "invalid", timeout),
        **more,
    )


def claude(
    adapter: str,
    timeout: str,
    answers: Answers | None = None,
    max_tokens: int = 64,
    first: dict[str, Any] | None = None,
    **more: Any,
) -> Sdk:
    """An SDK of Anthropic's messages; ``timeout``: what it raises."""
    cached = {
        a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: 0,
        a.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS: 0,
    }
    return Sdk(
        adapter,
        answers or Messages(),
        wire="anthropic.messages",
        asks={a.GEN_AI_REQUEST_MAX_TOKENS: max_tokens},
        told={a.GEN_AI_RESPONSE_ID: "msg_01", a.GEN_AI_RESPONSE_MODEL: MODEL, **cached},
        first={a.GEN_AI_USAGE_INPUT_TOKENS: 12, a.GEN_AI_USAGE_OUTPUT_TOKENS: 1, **(first or {})},
        errors=("invalid", "invalid", timeout),
        **more,
    )


def gemini(adapter: str, timeout: str, **more: Any) -> Sdk:
    """An SDK of Gemini's ``generateContent``; ``timeout``: what it raises."""
    return Sdk(
        adapter,
        Gemini(),
        "generate_content",
        "gcp.gen_ai",
        "gemini.generate_content",
        told={a.GEN_AI_RESPONSE_ID: "r-1", a.GEN_AI_RESPONSE_MODEL: MODEL},
        first={**BEGUN, a.GEN_AI_USAGE_INPUT_TOKENS: 12, a.GEN_AI_USAGE_OUTPUT_TOKENS: 5},
        errors=("invalid", "invalid", timeout),
        **more,
    )


def converse(adapter: str, timeout: str, **more: Any) -> Sdk:
    """An SDK of Bedrock's ``Converse``; ``timeout``: what it raises."""
    return Sdk(
        adapter,
        Converse(),
        provider="aws.bedrock",
        wire="bedrock.converse",
        errors=("invalid", "invalid", timeout),
        **more,
    )


SDKS: dict[str, Sdk] = {
    "openai": chat("stainless:OpenAI", "openai.APITimeoutError"),
    "openai responses": Sdk(
        "responses:Responses",
        Responses(),
        wire="openai.responses",
        asks={a.OPENAI_API_TYPE: "responses"},
        told={a.GEN_AI_RESPONSE_ID: "resp_1", a.GEN_AI_RESPONSE_MODEL: MODEL},
        whole={
            a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: 0,
            a.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS: 0,
            a.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS: 0,
        },
        errors=("invalid", "invalid", "openai.APITimeoutError"),
    ),
    "anthropic": claude("claude:Claude", "anthropic.APITimeoutError"),
    "anthropic bedrock": claude(
        "claude:ClaudeOnBedrock",
        "anthropic.APITimeoutError",
        BedrockMessages(),
        provider="aws.bedrock",
    ),
    "anthropic vertex": claude(
        "claude:ClaudeOnVertex", "anthropic.APITimeoutError", provider="gcp.vertex_ai"
    ),
    "google-genai": gemini("gemini:Gemini", "httpx2.ReadTimeout"),
    "boto3": converse(
        "bedrock:Bedrock",
        "botocore.exceptions.ReadTimeoutError",
        without=NO_ASYNC,
        schema=as_tool({"name": TOOL, "description": ABOUT}),
    ),
    "boto3 invoke": claude(
        "claude:Invoked",
        "botocore.exceptions.ReadTimeoutError",
        BedrockMessages(),
        provider="aws.bedrock",
        without=NO_ASYNC,
    ),
    "mistralai": chat("mistral:Mistral", "httpx2.ReadTimeout", Mistral()),
    "cohere": Sdk(
        "cohere_sdk:Cohere",
        Cohere(),
        provider="cohere",
        wire="cohere.chat",
        told={a.GEN_AI_RESPONSE_ID: "r-1"},
        errors=("400", "500", "httpx.ReadTimeout"),
        reads_on=True,
    ),
    "ollama": Sdk(
        "ollama_sdk:Ollama",
        Ollama(),
        provider="ollama",
        wire="ollama.chat",
        told={a.GEN_AI_RESPONSE_MODEL: MODEL},
        first=BEGUN,
        errors=("400", "500", "httpx.ReadTimeout"),
        without=NO_AGAIN,
        image={},
    ),
    "groq": chat("stainless:Groq", "groq.APITimeoutError"),
    "together": chat("stainless:Together", "together.APITimeoutError"),
    "huggingface_hub": chat(
        "hugging_face:HuggingFace",
        "huggingface_hub.errors.InferenceTimeoutError",
        without=NO_AGAIN,
    ),
    "litellm": chat("litellm_sdk:Litellm", "litellm.exceptions.Timeout"),
    "litellm anthropic": claude(
        "litellm_sdk:Anthropic",
        "litellm.exceptions.Timeout",
        max_tokens=128_000,
        first=BEGUN,
        schema=as_tool({"name": "json_tool_call"}),
        begun=4,
        leaves=True,
        reads_on=True,
    ),
    "litellm gemini": gemini("litellm_sdk:Gemini", "litellm.exceptions.Timeout", reads_on=True),
    "litellm bedrock": converse(
        "litellm_sdk:Bedrock",
        "litellm.exceptions.Timeout",
        first=BEGUN,
        schema=as_tool({"name": "json_tool_call", "description": "json_tool_call"}),
        begun=2,
    ),
}
"""By the name of the distribution; behind it, where it has several, the API."""


OLDEST = {
    "openai": "1.90.0",
    "anthropic": "0.60.0",
    "google-genai": "1.30.0",
    "boto3": "1.40.0",
    "mistralai": "2.0.5",
    "cohere": "5.17.0",
    "ollama": "0.5.0",
    "groq": "0.30.0",
    "together": "2.0.0",
    "huggingface_hub": "1.0.0",
    "litellm": "1.80.0",
    "xai-sdk": "1.6.0",
}
"""Distribution → the oldest version that is supported."""


def replies(sdk: Sdk, case: str) -> list[Reply]:
    """What the provider answers."""
    wire, said = sdk.answers, SAYS.get(case, HI)
    events = wire.events(said)
    first, others = events[: sdk.begun], events[sdk.begun :]
    if case == "refused":
        return [wire.error(400)]
    if case == "failed":
        return [wire.error(500)]
    if case == "again":
        return [wire.error(503), wire.reply(said)]
    if case == "timeout":
        return [wire.reply(said).but(before=Gate())]
    if case == "cut":
        return [wire.stream(said, truncate_at=len(b"".join(first)) + 3)]
    if case == "malformed":
        return [wire.stream(said).but(parts=[*first, wire.broken(), *others])]
    if case in ("abandoned", "cancelled"):
        return [wire.stream(said).but(parts=[*first, Gate()])]
    return [wire.stream(said) if case in STREAMED else wire.reply(said)]
