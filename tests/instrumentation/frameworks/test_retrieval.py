"""Spans of an unmodified program that searches with Chroma, Qdrant and pgvector, and at a replay."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from instrumentation.frameworks.conftest import APART, LAUNCHERS, Recorded, outline
from instrumentation.frameworks.test_crewai import CREWAI
from support.servers.postgres import PostgresServer
from support.servers.scripted import json_reply
from support.tapes.conventions import check_content, check_registered

from playhead_semconv import attributes as a

PROGRAM = Path(__file__).with_name("retrieval_program.py").read_text("utf-8")


pytestmark = pytest.mark.acceptance  # the import of Chroma takes seconds


@pytest.fixture(scope="module", params=LAUNCHERS, ids=" ".join)
def recorded(request: pytest.FixtureRequest, record: Callable[..., Recorded]) -> Recorded:
    launcher, level = request.param
    path = ":".join(map(str, (CREWAI, *APART)))
    server = PostgresServer()
    try:
        server.start()
        database = f"import os; os.environ['DATABASE'] = {server.url()!r}\n"  # also in a replay
        program = database + PROGRAM
        return record(program, "/none", json_reply({}), level, launcher=launcher, PYTHONPATH=path)
    finally:
        server.remove()


PRINTED = """\
chroma [['faq-1', 'faq-3']]
qdrant [1, 3]
pgvector [(1, 'Refunds take 3 days.'), (3, 'Kettles boil.')]
async_qdrant [2, 3, 1]
"""


def test_the_program_works_as_it_does_alone(recorded: Recorded):
    assert recorded.stdout == PRINTED


def test_each_search_is_a_retrieval_with_its_documents(recorded: Recorded):
    names = [line for line in outline(recorded.spans) if line.startswith("retrieval")]
    assert names == ["retrieval docs", "retrieval faq", "retrieval shelf", "retrieval later"]
    found = [span.attributes for root in recorded.spans for span in root.walk()]
    assert sum(check_registered(one) + check_content(one) for one in found) >= 16
    chroma = recorded.at("retrieval docs")
    documents = json.loads(chroma.pop(a.GEN_AI_RETRIEVAL_DOCUMENTS))
    assert chroma == {
        a.GEN_AI_OPERATION_NAME: "retrieval",
        a.GEN_AI_DATA_SOURCE_ID: "docs",
        a.GEN_AI_RETRIEVAL_TOP_K: 2,
        a.PLAYHEAD_FRAMEWORK_NAME: "chromadb",
    }
    assert [(one["id"], one["content"], one["page"]) for one in documents] == [
        ("faq-1", "Refunds take 3 days.", 1),
        ("faq-3", "Kettles boil.", 3),
    ]
    assert documents[0]["distance"] < documents[1]["distance"]
    qdrant = recorded.at("retrieval faq")
    documents = json.loads(qdrant[a.GEN_AI_RETRIEVAL_DOCUMENTS])
    assert [(one["id"], one["text"]) for one in documents] == [
        ("1", "Refunds take 3 days."),
        ("3", "Kettles boil."),
    ]
    assert documents[0]["score"] > documents[1]["score"]
    assert (qdrant[a.GEN_AI_RETRIEVAL_TOP_K], a.GEN_AI_RETRIEVAL_QUERY_TEXT in qdrant) == (2, False)
    postgresql = recorded.at("retrieval shelf")
    assert postgresql[a.GEN_AI_RETRIEVAL_TOP_K] == 2
    assert "<-> point" in postgresql[a.GEN_AI_RETRIEVAL_QUERY_TEXT]
    assert json.loads(postgresql[a.GEN_AI_RETRIEVAL_DOCUMENTS]) == [
        {"id": "1", "text": "Refunds take 3 days."},
        {"id": "3", "text": "Kettles boil."},
    ]


def test_a_replay_has_the_same_spans(recorded: Recorded):
    before, now = recorded.replayed()
    assert now == before
    assert "retrieval later" in str(before)
