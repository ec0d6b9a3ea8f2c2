"""OpenAI's batches: the file with their requests (``POST …/files``), and ``POST`` and ``GET …/batches``.

The requests of the file stay in the exchange. A batch is asked for many times: its usage is not
counted.
"""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from playhead_core.facts import Value
from playhead_genai.messages import InputMessage
from playhead_genai.providers.dialect import Plain, ResponseContent
from playhead_genai.providers.forms import files_in, form_of
from playhead_genai.providers.reading import Object, mapping, parse, text, without_none
from playhead_semconv import attributes as a


class _Batches(Plain):
    messages_field = ""

    def parameters(self, request: Object) -> dict[str, Value]:
        """Return the model, if the request names one."""
        return without_none({a.GEN_AI_REQUEST_MODEL: text(request.get("model"))})

    def message(self, item: Any) -> InputMessage:
        """Return an empty message: there are none."""
        return InputMessage(role="user")

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``: its id, and the model that works on it."""
        return ResponseContent(
            attributes=without_none(
                {
                    a.GEN_AI_RESPONSE_ID: text(body.get("id")),
                    a.GEN_AI_RESPONSE_MODEL: text(body.get("model")),
                }
            )
        )


class OpenAIBatchFile(_Batches):
    """The file with the requests of a batch of OpenAI: ``POST …/files``."""

    wire = "openai.batch_file"
    operation = "upload_batch"

    def unwrapped(self, body: bytes) -> bytes:
        """Return the body of a form: its fields, and the model if all requests of the file name one."""
        form = form_of(body)
        if form is None:
            return body
        models = {model for file in files_in(form.get("file")) for model in _models(str(file["data"]))}
        return msgspec.json.encode({"model": models.pop()} if len(models) == 1 else {})


class OpenAIBatch(_Batches):
    """A new batch of OpenAI: ``POST …/batches``."""

    wire = "openai.batch"
    operation = "create_batch"


class OpenAIFetchedBatch(_Batches):
    """The status of a batch of OpenAI: ``GET …/batches/BATCH``."""

    wire = "openai.fetched_batch"
    operation = "fetch_batch"


def _models(data: str) -> set[str]:
    """Return the models that the lines of a file name; a line that cannot be read names none."""
    found: set[str] = set()
    for line in base64.b64decode(data).splitlines():
        try:
            asked = mapping(parse(line))
        except (ValueError, RecursionError):
            continue
        model = text(mapping(asked.get("body")).get("model")) or text(asked.get("model"))
        found.add(model or "")
    return found - {""} if found != {""} else set()
