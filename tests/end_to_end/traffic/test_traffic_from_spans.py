"""Recorded traffic of providers, stripped to spans: the real SDKs understand what is rebuilt alike."""

from __future__ import annotations

import json
import shlex
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from end_to_end.traffic.test_recorded_traffic import HERE, SDKS, install, plan
from support.answers.cassettes import Interaction
from support.servers.scripted import ScriptedServer
from support.starting.home import Home
from support.starting.spans_only import strip_to_spans

from playhead_genai.providers import WireResponse, derive
from playhead_genai.rebuilding import FORMS
from playhead_genai.rebuilding.calls import asked_in
from playhead_receiver.storage import open_store
from playhead_replay import Environment, ReplayConfiguration, Run
from playhead_replay.semantic import SemanticResult, command_of, replay_spans
from playhead_semconv import attributes as a


def why_not(one: Interaction) -> str:
    """Why spans do not determine an answer; empty: they do."""
    asked = asked_in(f"{one.method} {one.url}", one.body)
    if asked is None:
        return "no call of a model"
    if asked[0] not in FORMS:
        return f"{asked[0]} is not rebuilt"
    if "/invoke-with" in one.url:
        return "a stream of Bedrock is not rebuilt"
    if one.status != 200:
        return ""
    if asked[1].embeds:
        return "spans have no vectors"
    answer = WireResponse(200, one.headers, [one.data], True)
    derived = derive(asked[0], one.body, answer, url=one.url)
    return "" if a.GEN_AI_OUTPUT_MESSAGES in derived.attributes else "the answer says nothing"


def with_other_client(one: Interaction) -> Interaction:
    """The same once more; if the program has a synchronous and an asynchronous client, by the other."""
    name = one.name.replace("async", "") if "async" in one.name else f"{one.name}_async"
    return replace(one, name=name)


def from_spans(
    folder: Path, program: str, asked: list[Interaction], libraries: list[Path]
) -> tuple[list[str], SemanticResult]:
    """What a program said when it was recorded, and its semantic replay."""
    home = Home(folder, {})
    with ScriptedServer() as server:
        server.script([one.reply() for one in asked])
        words = [HERE / program, server.url, plan(home.folder, asked), *libraries]
        recorded = home.playhead("record", *words)
    assert recorded.returncode == 0, recorded.stderr
    strip_to_spans(home)
    command = command_of(shlex.join(["python", *map(str, words)]), str(folder))
    around = Environment(python=sys.executable, folder=str(folder), environ=home.bare)
    store = open_store(home.data_dir, read_only=True)
    try:
        done = replay_spans(Run.load(store, "last"), command, ReplayConfiguration(around))
    finally:
        store.close()
    return recorded.stdout.splitlines(), done


@pytest.mark.acceptance
@pytest.mark.timeout(900)
@pytest.mark.parametrize("sdk", ["openai", "anthropic", "google-genai", "vertexai"])
def test_all_recorded_traffic(tmp_path: Path, sdk: str):
    there = SDKS[sdk].asked(all_there_are=True)
    known = [one for one in there if not why_not(one)]
    asked = known + [with_other_client(one) for one in known]
    libraries = install(tmp_path / "libraries", SDKS[sdk])
    heard, done = from_spans(tmp_path, SDKS[sdk].program, asked, libraries)
    report, now = done.report, done.stdout.decode().splitlines()
    for one, before, after in zip(asked, heard, now, strict=True):
        assert json.loads(after) == json.loads(before), f"{one.provider} {one.name} {one.url}"
    assert (report.verdict, report.exit_code) == ("semantic", 0), list(report.lines())
    assert not (report.refused or report.unused or report.not_rebuilt)
    assert {one.matched_by for one in report.answered} == {"messages, model and tools"}
    assert {what for one in report.answered for what in one.made_up} <= {"spelling of arguments"}
    left_out = dict(Counter(why for one in there if (why := why_not(one))))
    streamed = sum(one.streamed for one in asked)
    print(f"{sdk}: {len(asked)} exchanges, {streamed} streamed; not determined: {left_out or 'none'}")


def test_our_own_traffic(tmp_path: Path):
    asked = [one for one in SDKS["openai"].asked(all_there_are=False) if not why_not(one)]
    heard, done = from_spans(tmp_path, SDKS["openai"].program, asked, [])
    before = [json.loads(line) for line in heard]
    assert [json.loads(line) for line in done.stdout.splitlines()] == before
    assert [one["error"] for one in before] == [None, None, 404, None, None]
    assert done.report.verdict == "semantic"
