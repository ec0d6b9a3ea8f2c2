"""Agents that talk to a model over a WebSocket: stored exactly, replayed with no provider."""

from __future__ import annotations

import json
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.answers.sdk_table import APART
from support.servers.tls import IDENTITY
from support.starting.home import Home
from support.talks import program
from support.talks.calls import Wire, settled
from support.talks.gemini_calls import GEMINI
from support.talks.openai_calls import OPENAI
from support.talks.openai_script import ASYNC
from support.talks.responses_calls import RESPONSES
from support.talks.server import Cut, Frame, Refuse, Script, TalkServer, frame

from playhead_core.facts import Part
from playhead_replay import Run
from playhead_replay.run.exchanges import RecordedExchange
from playhead_replay.run.spans import Span
from playhead_semconv import attributes as a

PROGRAM = Path(program.__file__)
LONGEST = 2**20
"""Bytes of a message that `websockets` reads unless it is told otherwise."""


class Sdk(NamedTuple):
    """One client."""

    adapter: str
    wire: Wire
    without: tuple[str, ...] = ()
    """Cases that it has no means for."""

    @property
    def cases(self) -> list[str]:
        return [case for case in self.wire.scripts if case not in self.without]


SDKS = {
    "openai": Sdk("openai_sdk:Realtime", OPENAI, ASYNC),
    "openai async": Sdk("openai_sdk:AsyncRealtime", OPENAI),
    "openai azure": Sdk("openai_sdk:AzureRealtime", OPENAI, ASYNC),
    "openai responses": Sdk("responses_sdk:Responses", RESPONSES, ASYNC),
    "openai responses async": Sdk("responses_sdk:AsyncResponses", RESPONSES),
    "google-genai": Sdk("gemini_sdk:Live", GEMINI),
    "google-genai vertex": Sdk("gemini_sdk:LiveOnVertex", GEMINI),
}
LEVELS = ("exchanges", "strict")
IN_THE_SUITE = [
    ("openai", "strict", ["parallel", "session error", "refused"]),
    ("openai async", "exchanges", ["tools", "cancelled", "resumed"]),
    ("openai responses", "strict", ["plain", "failed", "interrupted"]),
    ("openai responses async", "exchanges", ["tools", "cut", "cancelled"]),
    ("google-genai", "exchanges", ["parallel", "cut", "interrupted", "huge"]),
]


@pytest.mark.parametrize(("name", "level", "cases"), IN_THE_SUITE)
def test_some_cases(tmp_path: Path, name: str, level: str, cases: list[str]):
    told_and_replayed(tmp_path, SDKS[name], level, cases)


@pytest.mark.acceptance
@pytest.mark.timeout(300)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", SDKS)
def test_all_cases(tmp_path: Path, name: str, level: str):
    told_and_replayed(tmp_path, SDKS[name], level, SDKS[name].cases)


def told_and_replayed(folder: Path, sdk: Sdk, level: str, cases: list[str]) -> None:
    """Record the cases; check what is told of each, what is stored, and the replay."""
    home, wire = Home(folder, {}), sdk.wire
    identity = trusted(home) if wire is GEMINI else ""
    server = TalkServer(wire.scripts, binary=wire is GEMINI)
    with server.running(identity):
        url = f"{'wss' if identity else 'ws'}://127.0.0.1:{server.port}"
        done = home.playhead("record", "--level", level, PROGRAM, url, APART, sdk.adapter, *cases)
    assert done.returncode == 0, done.stderr
    assert [line.partition(": ")[0] for line in done.stdout.splitlines()] == cases
    before = home.run("last")
    home.playhead("rederive")
    recorded = home.run("last")
    counted(home, recorded, sdk, cases)
    for case in cases:
        exchanges = [one for one in recorded.exchanges if f"/{case.replace(' ', '-')}/" in one.key]
        for run in (before, recorded):
            told = [call for one in exchanges for call in calls_over(run, one)]
            assert told_of(told, wire, case) == as_json(wire.expected(case)), case
        assert len(exchanges) == len(wire.scripts[case]), case
        stored_as_it_was(exchanges, server, wire.scripts[case], case)
    again = home.playhead("replay", "last", "--json", "--output", env=home.bare)
    report = json.loads(again.stdout)
    assert report["divergences"] == []
    assert (again.returncode, report["verdict"], report["level"]) == (0, "identical", level)
    assert done.stdout in again.stderr


def counted(home: Home, recorded: Run, sdk: Sdk, cases: list[str]) -> None:
    """The run's summary counts connections and calls as steps, and tokens."""
    calls = [call for case in cases for call in sdk.wire.calls[case]]
    whole = sum(call.whole for call in calls)
    (run,) = home.runs()
    assert (run["steps"], run["models"]) == (len(recorded.exchanges) + len(calls), [program.MODEL])
    assert (run["input_tokens"], run["output_tokens"]) == (12 * whole, 5 * whole)


def trusted(home: Home) -> str:
    """Have the programs of ``home`` trust the certificate in the file that is returned."""
    identity = home.folder / "identity.pem"
    identity.write_text(IDENTITY)
    for environ in (home.environ, home.bare):
        environ["SSL_CERT_FILE"] = str(identity)
    return str(identity)


def calls_over(run: Run, exchange: RecordedExchange) -> list[Span]:
    """The spans of the calls over a connection."""
    (connection,) = [step.span for step in run.steps if step.span.span_id == exchange.span_id]
    refused = (exchange.status_code or 0) >= 400
    assert connection.attributes.get(a.ERROR_TYPE) == str(exchange.status_code) or not refused
    return connection.children


def told_of(calls: list[Span], wire: Wire, case: str) -> Any:
    """What the spans say."""
    found: list[Any] = []
    for span, call in zip(calls, wire.calls[case], strict=True):
        assert span.failed is bool(call.error), case
        assert span.ended_ns is not None
        found.append(settled(span.attributes, call, (span.ended_ns - span.started_ns) / 1e9))
    return as_json(found)


def as_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


def stored_as_it_was(
    exchanges: list[RecordedExchange], server: TalkServer, scripts: list[Script], case: str
) -> None:
    """Every frame is stored, and how the connection ended."""
    heard = iter(server.heard[case])
    for exchange, script in zip(exchanges, scripts, strict=True):
        came, first = came_over(exchange), script[0]
        if isinstance(first, Refuse):
            assert exchange.status_code == (first.status or None), case
            assert came == ([("body", first.body.encode())] if first.status else []), case
            continue
        told = [frame for step in script for frame in server.frames(step)]
        if "broken" in dict(came):  # what its client refuses to read, a program does not have
            told = [*takewhile(lambda one: len(one[1]) < LONGEST, told)]
        assert came[: len(told)] == told, case
        assert {opcode for opcode, _ in came[len(told) :]} <= {"close", "eof", "broken"}, case
        assert sent_over(exchange) == [frame(one) for one in next(heard)], case
        cut = isinstance(script[-1], Cut) or "broken" in dict(came)
        assert exchange.end is not None
        assert exchange.end.how == ("error" if cut else "complete"), case


def came_over(exchange: RecordedExchange) -> list[Frame]:
    """Opcode and bytes of each frame that came."""
    pairs = zip(exchange.exchange.parts, exchange.chunks, strict=True)
    return [(opcode_of(part), chunk.data) for part, chunk in pairs]


def sent_over(exchange: RecordedExchange) -> list[Frame]:
    """Opcode and bytes of each message that the program sent."""
    numbered = enumerate(exchange.exchange.sent)
    frames = [(opcode_of(part), exchange.sent(number)) for number, part in numbered]
    return [(opcode, data) for opcode, data in frames if opcode != "close"]


def opcode_of(part: Part) -> str:
    return str(part.attributes[a.PLAYHEAD_WEBSOCKET_OPCODE])
