"""Rules of alerts, and their delivery: once, limited, signed, repeated after an error."""

from __future__ import annotations

import base64
import hashlib
import hmac
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
from support.servers.scripted import Reply, Request, ScriptedServer
from support.starting.running import until

from playhead_core.errors import ConfigurationError
from playhead_receiver.alerts import delivery
from playhead_receiver.alerts.delivery import MOST_PER_MINUTE, AlertSender
from playhead_receiver.alerts.rules import AlertEvent, read_alert, read_alerts
from playhead_receiver.storage import RunSummary

RUN = RunSummary("refund-1", "ab" * 16, "", "refund", "running", 1, None, 1, 0, 0, 0, [], [], [])


def event(identity: str, **fields: Any) -> AlertEvent:
    return msgspec.structs.replace(AlertEvent("loop", identity, frozenset(), {}, RUN), **fields)


@contextmanager
def sending(target: str, secret: str = "") -> Any:
    sender = AlertSender(read_alert(f"loop -> {target}"), secret)
    sender.start()
    try:
        yield sender
    finally:
        sender.stop()


def test_rules_are_a_query_and_a_target():
    loop, failure = read_alerts(
        "loop agent:refund -> https://host/secret; failure:timeout -> page 'a b'"
    )
    assert (loop.kinds, loop.parsed.query.agent, loop.target) == ({"loop"}, "refund", "https://host")
    assert (failure.kinds, failure.command) == ({"failure"}, ("page", "a b"))
    assert loop.concerns(event("x")) and not failure.concerns(event("x"))
    timeout = event("x", kind="failure", words=frozenset(("any", "tool", "timeout", "tool/timeout")))
    other = event("x", kind="failure", words=frozenset(("any", "tool", "api_error")))
    assert failure.concerns(timeout) and not failure.concerns(other)


@pytest.mark.parametrize(
    "text",
    [
        *("loop", "loop ->", "agent:refund -> page", "loop:no -> page", "loop -> http://", "-> page"),
        *("loop lop:x -> page", "loop word -> page", "stuck:no -> page", "loop -> 'page"),
    ],
)
def test_what_is_no_rule_is_refused(text: str):
    with pytest.raises(ConfigurationError, match="is not an alert"):
        read_alert(text)


def test_a_finding_is_reported_once_and_signed_and_what_is_left_out_is_counted():
    with ScriptedServer() as hook:
        hook.on("/", Reply(), repeat=True)
        with sending(f"{hook.url}/", "key") as sender:
            assert [sender.put(event("a")) for _ in range(3)] == [True, False, False]
            assert [sender.put(event(str(number))) for number in range(MOST_PER_MINUTE)].count(True) == (
                MOST_PER_MINUTE - 1
            )
            assert not sender.put(event("too many"))
            sender._latest.clear()  # a minute later
            assert sender.put(event("later"))
            until(lambda: sender.sent == MOST_PER_MINUTE + 1, "all are sent")
        assert (sender.suppressed, hook.requests[-1].json["suppressed"]) == (2, 2)
        ids = [one.headers["webhook-id"] for one in hook.requests]
        assert len(set(ids)) == len(ids)
        first = hook.requests[0]
        content = f"{ids[0]}.{first.headers['webhook-timestamp']}.".encode() + first.body
        signature = base64.b64encode(hmac.new(b"key", content, hashlib.sha256).digest()).decode()
        assert first.headers["webhook-signature"] == f"v1,{signature}"


def test_a_webhook_that_fails_is_tried_again_and_no_redirect_is_followed(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(delivery, "FIRST_PAUSE_S", 0.01)
    answers = iter([Reply(status=500), Reply(status=302, headers=[("location", "/other")]), Reply()])

    def answer(_: Request) -> Reply:
        return next(answers)

    with ScriptedServer() as hook:
        hook.on("/", answer, repeat=True)
        with sending(f"{hook.url}/") as sender:
            sender.put(event("a"))
            until(lambda: sender.sent, "it is sent")
        assert (len(hook.requests), sender.failed, sender.problem) == (3, 0, "")
        assert "webhook-signature" not in hook.requests[0].headers
        assert len({one.headers["webhook-id"] for one in hook.requests}) == 1


def test_a_command_that_fails_is_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(delivery, "FIRST_PAUSE_S", 0.001)
    with sending("false") as sender:
        sender.put(event("a"))
        until(lambda: sender.failed, "it is given up")
    assert (sender.sent, sender.problem) == (0, "CalledProcessError")
