"""What is derived from the same bytes changes only together with `DERIVER_VERSION`.

Stores derive an exchange again if its version is lower. Without a new version, stored runs would keep
the old meaning for ever. `UPDATE=1` writes the digests for the current version.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from support.answers.bedrock_answers import Converse, Messages
from support.answers.cassettes import own
from support.answers.sdk_answers import Answers, Chat, Cohere, Gemini, Mistral, Ollama, Responses
from support.answers.sdk_table import HI, SAYS
from support.servers.scripted import Reply

from playhead_core.facts import DERIVER_VERSION
from playhead_genai.providers import Derived, WireResponse, derive, recognised

DIGESTS = Path(__file__).with_name("derived_digests.json")
ANSWERS: dict[str, tuple[Answers, ...]] = {
    "openai.chat": (Chat(), Mistral()),
    "openai.responses": (Responses(),),
    "anthropic.messages": (Messages(),),
    "bedrock.converse": (Converse(),),
    "gemini.generate_content": (Gemini(),),
    "cohere.chat": (Cohere(),),
    "ollama.chat": (Ollama(),),
}
REQUEST = b'{"model": "m-1", "temperature": 0.5, "messages": [{"role": "user", "content": "Hello"}]}'


def replies(answers: Answers) -> Iterator[tuple[str, Reply]]:
    """Answers of a provider: whole, streamed, cut off, refused."""
    for name, said in {"text": HI, **SAYS}.items():
        yield name, answers.reply(said)
        yield f"{name} streamed", answers.stream(said)
    yield "error", answers.error(429)


def derivations() -> Iterator[tuple[str, Derived]]:
    """What is derived from each exchange, by a name of the exchange."""
    for number, one in enumerate(own()):
        wire = recognised(one.method, one.url, one.body)
        assert wire is not None, one.name
        response = WireResponse(one.status, one.headers, [one.data], True)
        yield f"{one.provider} {number}", derive(wire, one.body, response, url=one.url)
    for wire, kinds in ANSWERS.items():
        for answers in kinds:
            for name, reply in replies(answers):
                parts = [one for one in reply.parts if isinstance(one, bytes)]
                response = WireResponse(reply.status, list(reply.headers), parts, True)
                yield f"{wire} {type(answers).__name__} {name}", derive(wire, REQUEST, response)


def digests() -> dict[str, str]:
    """Digest of everything that is derived from each exchange."""
    encoded = {
        name: msgspec.json.encode(derived, enc_hook=repr, order="deterministic")
        for name, derived in derivations()
    }
    return {name: hashlib.sha256(data).hexdigest()[:16] for name, data in encoded.items()}


def test_what_is_derived_changes_with_the_version_alone():
    now: dict[str, Any] = {"version": DERIVER_VERSION, "digests": digests()}
    if os.environ.get("UPDATE"):
        DIGESTS.write_text(json.dumps(now, indent=1) + "\n", "utf-8")
    kept = json.loads(DIGESTS.read_text("utf-8"))
    assert len(now["digests"]) > 100
    changed = sorted(
        name for name, digest in now["digests"].items() if kept["digests"].get(name) != digest
    )
    assert now == kept, (
        f"derived from the same bytes, but different: {changed}; raise DERIVER_VERSION in"
        " playhead_core/facts.py and run this test with UPDATE=1"
    )
