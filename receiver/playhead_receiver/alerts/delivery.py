"""Sends alerts: once for each finding, at most `MOST_PER_MINUTE` by rule, signed.

The payload is signed as the Standard Webhooks specification says: the header ``webhook-signature`` is
``v1,`` and the base64 of the HMAC-SHA256 of ``ID.TIMESTAMP.BODY``. A command gets the payload on its
standard input. Redirects are not followed.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import queue
import subprocess
import threading
import time
import urllib.request
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from playhead_receiver.alerts.rules import AlertEvent, AlertRule
from playhead_receiver.queries.matching_runs import selects
from playhead_receiver.storage import Store

log = logging.getLogger(__name__)

MOST_PER_MINUTE: Final = 20
"""Alerts of a rule; the next one says how many were left out."""
MOST_PENDING: Final = 1000
REMEMBERED: Final = 10_000
"""Findings of a rule that are known to be reported."""
TRIES: Final = 4
FIRST_PAUSE_S: Final = 1.0
TIMEOUT_S: Final = 10.0
COMMAND_TIMEOUT_S: Final = 60.0


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: Any
    ) -> None:
        """Follow no redirect: the payload is for the address that was configured."""


class AlertSender:
    """Sends the alerts of one rule, in a thread of its own: a slow webhook delays no other."""

    def __init__(self, rule: AlertRule, secret: str = "") -> None:
        self.rule = rule
        self.sent = 0
        self.failed = 0
        self.suppressed = 0
        self.problem = ""
        """Why the last alert was not delivered; empty if it was."""
        self._secret = secret.encode()
        self._queue: queue.Queue[tuple[str, bytes]] = queue.Queue(MOST_PENDING)
        self._known: OrderedDict[str, None] = OrderedDict()
        self._latest: deque[float] = deque(maxlen=MOST_PER_MINUTE)
        self._left_out = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="playhead-alerts", daemon=True)

    def put(self, event: AlertEvent, tenant: str = "") -> bool:
        """Queue an alert, unless it was reported before or too many were; whether it was queued."""
        told = f"{tenant}/{event.run.trace_id}/{event.kind}/{event.identity}"
        id = hashlib.sha256(f"{self.rule.text}/{told}".encode()).hexdigest()[:32]
        now_s = time.monotonic()
        with self._lock:
            if id in self._known:
                return False
            self._known[id] = None
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
            full = len(self._latest) == MOST_PER_MINUTE and now_s - self._latest[0] < 60
            if full or self._queue.full():
                self._left_out += 1
                self.suppressed += 1
                return False
            self._latest.append(now_s)
            left_out, self._left_out = self._left_out, 0
        self._queue.put_nowait(
            (id, msgspec.json.encode(payload(id, event, self.rule, tenant, left_out)))
        )
        return True

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, timeout_s: float = TIMEOUT_S) -> None:
        """Send what is queued, for at most ``timeout_s``. Idempotent."""
        until_s = time.monotonic() + timeout_s
        while not self._queue.empty() and time.monotonic() < until_s and self._thread.is_alive():
            self._stop.wait(0.02)
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(max(until_s - time.monotonic(), 0.1))

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                id, body = self._queue.get(timeout=0.2)
            except queue.Empty:
                continue
            pause_s = FIRST_PAUSE_S
            for number in range(TRIES):
                if number:
                    self._stop.wait(pause_s)
                    pause_s *= 4
                try:
                    self._send(id, body)
                except (OSError, ValueError, subprocess.SubprocessError) as problem:
                    self.problem = type(problem).__name__
                    continue
                self.sent, self.problem = self.sent + 1, ""
                break
            else:
                self.failed += 1
                log.warning("an alert to %s is not delivered: %s", self.rule.target, self.problem)

    def _send(self, id: str, body: bytes) -> None:
        if not self.rule.url:
            subprocess.run(
                list(self.rule.command),
                input=body,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=COMMAND_TIMEOUT_S,
                check=True,
            )
            return
        headers = {"content-type": "application/json", "user-agent": "playhead"}
        headers |= signed(id, int(time.time()), body, self._secret)
        request = urllib.request.Request(self.rule.url, body, headers, method="POST")
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=TIMEOUT_S) as answer:
            answer.read(1 << 16)


def signed(id: str, timestamp: int, body: bytes, secret: bytes) -> dict[str, str]:
    """Return the headers of a payload; without a secret it has no signature."""
    headers = {"webhook-id": id, "webhook-timestamp": str(timestamp)}
    if secret:
        content = b".".join((id.encode(), str(timestamp).encode(), body))
        digest = hmac.new(secret, content, hashlib.sha256).digest()
        headers["webhook-signature"] = f"v1,{base64.b64encode(digest).decode()}"
    return headers


def payload(id: str, event: AlertEvent, rule: AlertRule, tenant: str, left_out: int) -> dict[str, Any]:
    """Return what an alert says. It has no content of the run: names, codes, counts and steps."""
    run = event.run
    return {
        "schema_version": 1,
        "id": id,
        "kind": event.kind,
        "rule": rule.text,
        "time_ns": time.time_ns(),
        "tenant": tenant,
        "run": {
            "name": run.name,
            "trace_id": run.trace_id,
            "agent": run.agent,
            "status": run.status,
            "started_ns": run.started_ns,
            "environment": run.environment,
            "version": run.version,
        },
        "found": event.found,
        "suppressed": left_out,
    }


class Alerts:
    """The alerts of a receiver. Safe from any thread."""

    def __init__(self, rules: Sequence[AlertRule], secret: str = "") -> None:
        self.senders = [AlertSender(rule, secret) for rule in rules]

    def notify(self, tenant: str, store: Store, event: AlertEvent) -> None:
        """Send what was found in a run of a tenant to each rule that it concerns."""
        for one in self.senders:
            if one.rule.concerns(event) and selects(store, one.rule.parsed.query, event.run):
                one.put(event, tenant)

    def start(self) -> None:
        """Start sending."""
        for one in self.senders:
            one.start()

    def stop(self) -> None:
        """Send what is queued, then stop. Idempotent."""
        for one in self.senders:
            one.stop()
