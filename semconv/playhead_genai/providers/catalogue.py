"""Catalogue of wires: how to recognize a request of each, and which class reads it.

A wire is the request format of a provider's API. It is recognized by method, path and body fields, at
any host. A dialect is imported when the first body of its wire is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from playhead_genai.providers.dialect import Dialect

Types = tuple[type | str, ...]
"""Types that a field may have, or texts that it may be."""

_TEXT: Types = (str,)
_LIST: Types = (list,)
_EITHER: Types = (str, list)
_OBJECT: Types = (dict,)
_FILES: Types = (dict, list)


class Wire(NamedTuple):
    """What a request of one wire looks like."""

    name: str
    """As in ``playhead.wire``."""
    path: str
    """Regular expression for the end of the path."""
    fields: tuple[tuple[str, Types], ...]
    """Fields that the body of every request has, and their types; of a form, a file is an object."""
    dialect: str
    """Module in this package and class of the dialect: ``openai.chat:OpenAIChat``."""
    method: str = "POST"
    binary: bool = False
    """Whether the body is not JSON, so that the path alone identifies the wire."""


_INVOKE = r"/model/[^/]+/invoke(?:-with-response-stream)?"
_EMBED = r"/model/[^/]*embed[^/]*/invoke"
_PREDICT = r"/models/[^/]+:(?:rawPredict|streamRawPredict)"

WIRES: Final = (
    Wire("openai.chat", r"/chat/completions", (("messages", _LIST),), "openai.chat:OpenAIChat"),
    Wire(
        "openai.responses",
        r"/responses",
        (("model", _TEXT), ("input", _EITHER)),
        "openai.responses:OpenAIResponses",
    ),
    Wire(
        "openai.embeddings", r"/embeddings", (("input", _EITHER),), "openai.embeddings:OpenAIEmbeddings"
    ),
    Wire(
        "anthropic.messages",
        r"/v1/messages",
        (("model", _TEXT), ("messages", _LIST), ("max_tokens", (int,))),
        "anthropic.messages:AnthropicMessages",
    ),
    Wire(
        "anthropic.messages",
        rf"(?:{_PREDICT}|{_INVOKE})",
        (("anthropic_version", _TEXT), ("messages", _LIST)),
        "anthropic.messages:AnthropicMessages",
    ),
    Wire(
        "anthropic.count_tokens",
        r"/v1/messages/count_tokens",
        (("model", _TEXT), ("messages", _LIST)),
        "anthropic.messages:AnthropicCountTokens",
    ),
    Wire(
        "anthropic.batch",
        r"/v1/messages/batches",
        (("requests", _LIST),),
        "anthropic.batches:AnthropicBatch",
    ),
    Wire(
        "anthropic.fetched_batch",
        r"/v1/messages/batches/msgbatch_[^/]+",
        (),
        "anthropic.batches:AnthropicFetchedBatch",
        "GET",
    ),
    Wire(
        "anthropic.batch_results",
        r"/v1/messages/batches/msgbatch_[^/]+/results",
        (),
        "anthropic.batches:AnthropicBatchResults",
        "GET",
    ),
    Wire(
        "openai.compaction",
        r"/responses/compact",
        (("model", _TEXT),),
        "openai.responses:OpenAICompaction",
    ),
    Wire(
        "openai.fetched_response",
        r"/responses/resp_[^/]+",
        (),
        "openai.responses:OpenAIFetchedResponse",
        "GET",
    ),
    Wire(
        "openai.completions",
        r"/completions",
        (("model", _TEXT), ("prompt", _EITHER)),
        "openai.chat:OpenAICompletions",
    ),
    Wire(
        "openai.moderation",
        r"/moderations",
        (("input", (str, list, dict)),),
        "openai.moderation:OpenAIModeration",
    ),
    Wire(
        "openai.images",
        r"/images/(?:generations|edits)",
        (("prompt", _TEXT),),
        "openai_media.images:OpenAIImages",
    ),
    Wire(
        "openai.images", r"/images/variations", (("image", _FILES),), "openai_media.images:OpenAIImages"
    ),
    Wire(
        "openai.speech",
        r"/audio/speech",
        (("model", _TEXT), ("input", _TEXT)),
        "openai_media.speech:OpenAISpeech",
    ),
    Wire(
        "openai.transcription",
        r"/audio/(?:transcriptions|translations)",
        (("model", _TEXT),),
        "openai_media.transcription:OpenAITranscription",
    ),
    Wire(
        "openai.batch",
        r"/batches",
        (("input_file_id", _TEXT), ("endpoint", _TEXT)),
        "openai.batches:OpenAIBatch",
    ),
    Wire(
        "openai.fetched_batch",
        r"/batches/batch_[^/]+",
        (),
        "openai.batches:OpenAIFetchedBatch",
        "GET",
    ),
    Wire(
        "openai.batch_file",
        r"/files",
        (("purpose", ("batch",)), ("file", _FILES)),
        "openai.batches:OpenAIBatchFile",
    ),
    Wire(
        "gemini.generate_content",
        r"/[^/]+:(?:generateContent|streamGenerateContent)",
        (("contents", (list, dict, str)),),
        "google.generate_content:GeminiGenerateContent",
    ),
    Wire(
        "gemini.count_tokens",
        r"/[^/]+:countTokens",
        (("contents", (list, dict, str)),),
        "google.generate_content:GeminiCountTokens",
    ),
    Wire(
        "gemini.count_tokens",
        r"/[^/]+:countTokens",
        (("generateContentRequest", _OBJECT),),
        "google.generate_content:GeminiCountTokens",
    ),
    Wire(
        "gemini.embed_content",
        r"/[^/]+:embedContent",
        (("content", _OBJECT),),
        "google.embeddings:GeminiEmbedContent",
    ),
    Wire(
        "gemini.batch_embed_contents",
        r"/[^/]+:batchEmbedContents",
        (("requests", _LIST),),
        "google.embeddings:GeminiBatchEmbedContents",
    ),
    Wire(
        "vertex.predict_embeddings",
        r"/models/[^/]*embedding[^/]*:predict",
        (("instances", _LIST),),
        "google.embeddings:VertexPredictEmbeddings",
    ),
    Wire(
        "bedrock.converse",
        r"/model/[^/]+/converse(?:-stream)?",
        (),
        "bedrock.converse:BedrockConverse",
    ),
    Wire(
        "bedrock.titan_embeddings",
        _EMBED,
        (("inputText", _TEXT),),
        "bedrock.embeddings:TitanEmbeddings",
    ),
    Wire(
        "bedrock.cohere_embeddings",
        _EMBED,
        (("texts", _LIST),),
        "bedrock.embeddings:CohereEmbeddings",
    ),
    Wire("bedrock.titan", _INVOKE, (("inputText", _TEXT),), "bedrock.text:BedrockTitan"),
    Wire("bedrock.prompt", _INVOKE, (("prompt", _TEXT),), "bedrock.text:BedrockPrompt"),
    Wire("bedrock.command_r", _INVOKE, (("message", _TEXT),), "bedrock.text:BedrockCommandR"),
    Wire(
        "bedrock.converse",
        r"/model/[^/]*nova[^/]*/invoke(?:-with-response-stream)?",
        (("messages", _LIST),),
        "bedrock.converse:BedrockConverse",
    ),
    Wire("openai.chat", _INVOKE, (("messages", _LIST),), "openai.chat:OpenAIChat"),
    Wire("cohere.chat", r"/v2/chat", (("model", _TEXT), ("messages", _LIST)), "cohere:CohereChat"),
    Wire("cohere.embed", r"/v2/embed", (("model", _TEXT),), "cohere:CohereEmbed"),
    Wire("ollama.chat", r"/api/chat", (("model", _TEXT), ("messages", _LIST)), "ollama:OllamaChat"),
    Wire(
        "ollama.generate",
        r"/api/generate",
        (("model", _TEXT), ("prompt", _TEXT)),
        "ollama:OllamaGenerate",
    ),
    Wire(
        "ollama.embed",
        r"/api/embed",
        (("model", _TEXT), ("input", _EITHER)),
        "ollama:OllamaEmbed",
    ),
    Wire(
        "hugging_face.feature_extraction",
        r"/models/.+/pipeline/feature-extraction",
        (("inputs", _EITHER),),
        "hugging_face:HuggingFaceFeatureExtraction",
    ),
    Wire("xai.chat", r"/xai_api\.Chat/GetCompletion", (), "xai.chat:XaiChat", binary=True),
    Wire(
        "xai.chat_stream",
        r"/xai_api\.Chat/GetCompletionChunk",
        (),
        "xai.chat:XaiChatStream",
        binary=True,
    ),
    Wire(
        "xai.deferred",
        r"/xai_api\.Chat/StartDeferredCompletion",
        (),
        "xai.chat:XaiDeferred",
        binary=True,
    ),
    Wire(
        "xai.fetched_deferred",
        r"/xai_api\.Chat/GetDeferredCompletion",
        (),
        "xai.chat:XaiFetchedDeferred",
        binary=True,
    ),
    Wire(
        "xai.images",
        r"/xai_api\.Image/GenerateImage",
        (),
        "xai.images:XaiImages",
        binary=True,
    ),
)
"""All wires, in the order in which they are tried: several may have the same path."""

_BY_PATH = tuple((wire, re.compile(f"{wire.path}\\Z")) for wire in WIRES)
BODILESS: Final = frozenset(wire.name for wire in WIRES if wire.method == "GET")
"""Wires whose requests have no body."""

_LONGEST_PATH = 4096
_MODEL = re.compile(
    r"/(?:models?|deployments|tunedModels)/"
    r"([^/]+(?:/[^/]+)?(?=/pipeline/)|[^/]+?(?=(?::[a-z]+(?:[A-Z][a-z]+)*)?(?:/|\Z)))"
)


class LazyDialects(Mapping[str, Dialect]):
    """Dialects by the names of their wires; each is imported when it is first used."""

    def __init__(self) -> None:
        self._classes = {wire.name: wire.dialect for wire in WIRES}
        self.loaded: dict[str, Dialect] = {}
        """Dialects that were used so far."""

    def __getitem__(self, name: str) -> Dialect:
        dialect = self.loaded.get(name)
        if dialect is None:
            module, _, kind = self._classes[name].partition(":")
            dialect = getattr(import_module(f"playhead_genai.providers.{module}"), kind)()
            self.loaded[name] = dialect
        return dialect

    def __contains__(self, name: object) -> bool:
        return name in self._classes

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)


DIALECTS: Final = LazyDialects()
"""Dialects by the names of their wires."""


def path_of(url: str) -> str:
    """Return the path in a URL or path, without a slash at its end."""
    return url.partition("?")[0].partition("#")[0].rstrip("/")


def at_path(method: str, url: str) -> Iterator[Wire]:
    """Yield the wires that a request with this method and URL may belong to, the likeliest first."""
    path, method = path_of(url)[-_LONGEST_PATH:], method.upper()
    return (wire for wire, form in _BY_PATH if wire.method == method and form.search(path))


def wire_of(method: str, url: str) -> str | None:
    """Return the likeliest wire for a request's method and URL or path, or None."""
    wire = next(at_path(method, url), None)
    return None if wire is None else wire.name


def fits(wire: Wire, body: Mapping[str, Any]) -> bool:
    """Whether the body of a request has the fields that the wire's requests have."""
    return all(_has_type(body.get(name), types) for name, types in wire.fields)


def _has_type(value: Any, types: Types) -> bool:
    return any(value == kind if isinstance(kind, str) else isinstance(value, kind) for kind in types)


def model_in(url: str) -> str:
    """Return the model that a URL names, as with Bedrock, Gemini and others; else an empty text."""
    found = _MODEL.search(path_of(url)[-_LONGEST_PATH:])
    return unquote(found[1]) if found else ""
