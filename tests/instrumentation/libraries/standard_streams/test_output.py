"""What is printed stands on the tape line by line; the streams stay what they are."""

import contextlib
import io
import logging
import sys
import threading

import httpx2
import pytest
from opentelemetry.instrumentation.utils import suppress_instrumentation
from support.servers.scripted import ScriptedServer, json_reply
from support.starting.running import PATIENCE_S
from support.tapes.sessions import recording

from playhead_instrumentation.patching import lanes
from playhead_semconv import attributes as a
from playhead_semconv import events as e


def printed(sink, kind="stdout"):
    return [
        fact.body.inline.decode()
        for fact in sink.named(e.PLAYHEAD_EFFECT)
        if fact.attributes[a.PLAYHEAD_EFFECT_KIND] == kind
    ]


def test_lines_of_both_streams(capsys):
    before = sys.stdout, sys.stderr
    with recording() as sink:
        assert (sys.stdout, sys.stderr) == before
        print("one", 1, True)
        print("two\nthree")
        sys.stdout.writelines(["four\n", "five"])
        print("oops", file=sys.stderr)
    assert printed(sink) == ["one 1 True\n", "two\nthree\n", "four\n", "five"]
    assert printed(sink, "stderr") == ["oops\n"]
    assert capsys.readouterr() == ("one 1 True\ntwo\nthree\nfour\nfive", "oops\n")


def test_a_line_that_is_not_ended_is_there_when_it_is_flushed(capsys):
    with recording() as sink:
        print("tok", end="", flush=True)
        assert printed(sink) == ["tok"]
        print("en", end="")
        assert printed(sink) == ["tok"]
        sys.stdout.flush()
        assert printed(sink) == ["tok", "en"]


def test_what_threads_print_into_one_line_stays_with_each_of_them(capsys):
    begun, other_printed = threading.Event(), threading.Event()

    def first() -> None:
        print("asked:", end="")
        begun.set()
        assert other_printed.wait(PATIENCE_S)
        print(" one")

    with recording() as sink:
        thread = threading.Thread(target=first)
        thread.start()
        assert begun.wait(PATIENCE_S)
        print("asked: two")
        other_printed.set()
        thread.join()
    said = [(fact.lane, fact.body.inline) for fact in sink.named(e.PLAYHEAD_EFFECT)]
    (one, _), (two, _), (one_again, _) = said
    assert one == one_again != two == lanes.MAIN.hash
    assert [text for _, text in said] == [b"asked:", b"asked: two\n", b" one\n"]
    assert capsys.readouterr().out == "asked:asked: two\n one\n"


def test_a_request_of_one_thread_leaves_the_line_of_another_with_it(capsys):
    begun, asked = threading.Event(), threading.Event()

    def first() -> None:
        print("secret", end="")
        begun.set()
        assert asked.wait(PATIENCE_S)

    with ScriptedServer() as server, recording() as sink:
        server.script([json_reply({})])
        thread = threading.Thread(target=first)
        thread.start()
        assert begun.wait(PATIENCE_S)
        httpx2.get(server.url, timeout=60)
        asked.set()
        thread.join()
    [secret] = sink.named(e.PLAYHEAD_EFFECT)
    assert (secret.body.inline, secret.lane != lanes.MAIN.hash) == (b"secret", True)


def test_what_was_printed_stands_before_what_is_asked_next(capsys):
    with ScriptedServer() as server, recording() as sink:
        server.script([json_reply({})])
        print("asking", end="")
        httpx2.get(server.url, timeout=60)
    names = [fact.name for fact in sink.facts]
    assert names.index(e.PLAYHEAD_EFFECT) < names.index(e.PLAYHEAD_EXCHANGE_REQUEST)


def test_another_stream_in_its_place_is_the_programs_own(capsys):
    with recording() as sink, contextlib.redirect_stdout(io.StringIO()) as own:
        print("kept")
    assert own.getvalue() == "kept\n"
    assert printed(sink) == []


def test_logging_goes_through_it(capsys):
    with recording() as sink:
        handler = logging.StreamHandler(sys.stderr)
        logging.getLogger("agent").addHandler(handler)
        logging.getLogger("agent").warning("careful")
        logging.getLogger("agent").removeHandler(handler)
    assert "".join(printed(sink, "stderr")) == "careful\n"


def test_a_credential_is_not_printed_on_the_tape(capsys, monkeypatch):
    monkeypatch.setenv("SERVICE_TOKEN", "very-secret-token")
    with recording() as sink:
        print("token is very-secret-token!")
    assert printed(sink) == ["token is [redacted]!\n"]
    assert sink.named(e.PLAYHEAD_EFFECT)[0].attributes[a.PLAYHEAD_REDACTED_COUNT] == 1
    assert capsys.readouterr().out == "token is very-secret-token!\n"


def test_without_a_session_it_only_prints(capsys):
    with recording() as sink:
        pass
    print("after")
    assert printed(sink) == []
    assert capsys.readouterr().out == "after\n"


def test_a_stream_that_fails_fails_as_it_does(capsys):
    with recording(), pytest.raises(TypeError):
        sys.stdout.write(b"bytes")  # type: ignore[arg-type]


def test_what_an_exporter_prints_is_not_the_programs(capsys):
    with recording() as sink:
        with suppress_instrumentation():
            print('{"name": "span"}')
        print("mine")
    assert printed(sink) == ["mine\n"]
    assert capsys.readouterr().out == '{"name": "span"}\nmine\n'
