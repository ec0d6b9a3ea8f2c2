"""Recorded traffic of OpenAI, where ``PLAYHEAD_CASSETTES`` names a folder of VCR files of it."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.conventions import check_content

from playhead_semconv.wire import DIALECTS, PrefixCache, WireResponse, derive, wire_of

FOLDER = os.environ.get("PLAYHEAD_CASSETTES")


def exchanges(path: Path) -> Iterator[tuple[str, bytes, WireResponse]]:
    document: dict[str, Any] = yaml.load(
        path.read_text("utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    )
    for interaction in document["interactions"]:
        request, response = interaction["request"], interaction["response"]
        wire = wire_of(request["method"], request["uri"])
        if wire is None:
            continue
        data = response["body"]["string"]
        headers = [(name, value) for name, values in response["headers"].items() for value in values]
        yield (
            wire,
            raw(request["body"]),
            WireResponse(response["status"]["code"], headers, [raw(data)], True),
        )


def raw(body: Any) -> bytes:
    return body if isinstance(body, bytes) else (body or "").encode()


if FOLDER:
    FILES = [path for path in sorted(Path(FOLDER).rglob("*.yaml")) if any(exchanges(path))]

    @pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
    def test_cassette(path: Path):
        cache = PrefixCache()
        for wire, body, response in exchanges(path):
            found = derive(wire, body, response, cache)
            assert found == derive(wire, body, response)
            pieces = [response.chunks[0][i : i + 3] for i in range(0, len(response.chunks[0]), 3)]
            split = WireResponse(response.status_code, response.headers, pieces, True)
            assert derive(wire, body, split) == found
            assert check_content(found.attributes) >= 1
            assert found.problem == ""
            assert found.content_complete
            request = json.loads(body)
            assert found.request_model == request.get("model", "")
            assert found.streamed == bool(request.get("stream") and response.status_code == 200)
            assert bool(found.error_type) == (response.status_code != 200)
            if response.status_code == 200 and DIALECTS[wire].operation == "chat":
                assert found.attributes["gen_ai.output.messages"]
                assert found.attributes["gen_ai.response.finish_reasons"]
