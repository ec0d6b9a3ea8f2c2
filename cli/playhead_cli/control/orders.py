"""Commands to a running agent, sent over the query API of the receiver that it reports to."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

import click
import msgspec

from playhead_cli.completion.arguments import complete_run
from playhead_cli.control.state_lines import control_lines
from playhead_cli.session.session import Session
from playhead_cli.targets.run_argument import parse_target
from playhead_core.errors import PlayheadError, RunUnknown, UsageError
from playhead_core.untrusted.shown_text import visible
from playhead_exporter.spool.control_request import ControlRequest
from playhead_exporter.spool.folders import SpoolFolders
from playhead_receiver.queries.language import duration_ns
from playhead_receiver.system.writer_lock import running

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead_cli.json_output.controlled import PrintedControl

TIMEOUT_S = 90.0
MOST_BYTES = 64 << 20
WAIT_S = 10.0
"""How long a command waits for a pending request of a paused run."""
POLL_S = 9.0
"""Longest time of one poll for changes."""
STARTING_S = 3.0
"""How long a receiver may take to start its query API; also how long an order
waits for an agent that does not accept orders yet."""
SWITCHING_S = 35.0
"""How long an agent may take to switch control on; an idle one looks at each heartbeat, every 30 s."""
SWITCHED_BY = ("pause", "step", "breakpoints", "limits", "checkpoint")
"""Orders that make sense for an agent that does not accept orders yet."""
PAUSE_S = 0.05
"""Pause between two such checks."""

UNKNOWN = 404

FROM_THE_START = "start it with PLAYHEAD_CONTROL=on"


class OrderRefused(UsageError):
    """The receiver refuses an order, or the agent cannot carry it out."""

    code = "control-refused"


class NotConnected(OrderRefused):
    """No process of the run accepts orders, or not yet."""

    type = "urn:playhead:not-controlled"


class NoReceiver(PlayheadError):
    """No receiver accepts orders."""

    code = "control-unreachable"


class Operator:
    """A client of the query API that sends orders of the user."""

    def __init__(self, session: Session, url: str | None) -> None:
        """``url``: of the query API; None: of the receiver on the data folder. `NoReceiver`."""
        import urllib3

        self._session, settings = session, session.settings
        self._url, token = (url.rstrip("/"), settings.token) if url else _found(session)
        self._headers = {"content-type": "application/json"}
        if token:
            self._headers["authorization"] = f"Bearer {token}"
        self._pool = urllib3.PoolManager(
            retries=False,
            ca_certs=settings.certificate or None,
            cert_file=settings.client_certificate or None,
            key_file=settings.client_key or None,
        )

    def order(self, run: str, what: str, **said: Any) -> dict[str, Any]:
        """Send an order, as soon as an agent that has just started accepts orders.

        An agent of this user on this machine that was started without control is asked to switch it on.
        Return the control state of the run. `OrderRefused`, `NoReceiver`.
        """
        path, body = f"/v1/runs/{quote(run, safe='')}/{what}", {"by": _name(), **said}
        until_s, switches = time.monotonic() + STARTING_S, what in SWITCHED_BY
        while True:
            try:
                return self._asked("POST", path, body)
            except NotConnected:
                if time.monotonic() >= until_s:
                    raise
            if switches:
                switches = False
                self._switch_on(run)
                until_s = time.monotonic() + STARTING_S
            time.sleep(PAUSE_S)

    def _switch_on(self, run: str) -> None:
        """Ask the processes of a run on this machine to switch control on; wait until they have.

        Those that take longer than the first find the request later. `OrderRefused` if one refuses, or
        none answers. Does nothing if none of them is here.
        """
        folders = SpoolFolders.of(self._session.settings)
        try:
            found = self._asked("GET", f"/v1/runs/{quote(run, safe='')}")["run"]["instances"]
            requests = {one: ControlRequest(folders, bytes.fromhex(one)) for one in found}
            asked = {one: request for one, request in requests.items() if request.make(_name())}
        except (PlayheadError, OSError, KeyError, ValueError):  # the receiver says why it refuses
            return
        if not asked:
            return
        self._session.progress("it was started without control: asking it to switch control on")
        until_s, count = time.monotonic() + SWITCHING_S, len(asked)
        try:
            while asked and time.monotonic() < until_s:
                connected = {one["instance"] for one in self.state(run)["processes"]}
                for instance in connected & asked.keys():
                    asked.pop(instance).withdraw()
                    until_s = min(until_s, time.monotonic() + STARTING_S)
                for request in asked.values():
                    if refusal := request.refusal():
                        raise OrderRefused(
                            f"the agent does not accept commands: {visible(refusal)}",
                            hint=FROM_THE_START,
                        )
                time.sleep(PAUSE_S)
            if len(asked) == count:
                raise OrderRefused(
                    f"the agent did not switch control on within {SWITCHING_S:g} s",
                    cause="it is stopped or does not reach the receiver, or its playhead is too old",
                    hint=FROM_THE_START,
                )
        except BaseException:
            for request in asked.values():
                request.withdraw()
            raise

    def state(self, run: str, after: int | None = None, wait_s: float = POLL_S) -> dict[str, Any]:
        """Return the control state of a run; with ``after``, wait for a later revision."""
        more = "" if after is None else f"?after={after}&wait_s={wait_s:g}"
        return self._asked("GET", f"/v1/runs/{quote(run, safe='')}/control{more}")

    def wait_for_pending(self, run: str, state: dict[str, Any], wait_s: float) -> dict[str, Any]:
        """Return the control state of a run when a request is pending, or after ``wait_s``."""
        until_s = time.monotonic() + wait_s
        while not state["halted"] and state["processes"] and (left_s := until_s - time.monotonic()) > 0:
            state = self.state(run, state["revision"], min(left_s, POLL_S))
        return state

    def _asked(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        import urllib3

        try:
            answer = self._pool.request(
                method,
                self._url + path,
                body=None if body is None else msgspec.json.encode(body),
                headers=self._headers,
                timeout=TIMEOUT_S,
                redirect=False,
                preload_content=False,
            )
            data = answer.read(MOST_BYTES)
            found: Any = msgspec.json.decode(data)
        except (urllib3.exceptions.HTTPError, msgspec.DecodeError) as problem:
            raise NoReceiver(
                f"{self._url} does not answer",
                cause=str(problem),
                hint="its query API: playhead up --query-port PORT",
            ) from None
        if answer.status == 200 and isinstance(found, dict):
            return cast("dict[str, Any]", found)
        said = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
        what, cause, hint = (visible(str(said.get(name, ""))) for name in ("detail", "cause", "hint"))
        kind = RunUnknown if answer.status == UNKNOWN else OrderRefused
        if said.get("type") == NotConnected.type:
            kind = NotConnected
        raise kind(what or f"{self._url} answered {answer.status}", cause=cause, hint=hint)


def _found(session: Session) -> tuple[str, str]:
    """Return the query API of the receiver on the data folder, and the token for it."""
    found = running(session.data_dir)
    until_s = time.monotonic() + STARTING_S
    while found is not None and not found.query and time.monotonic() < until_s:
        time.sleep(PAUSE_S)
        found = running(session.data_dir)
    if found is None or not found.query:
        who = "no receiver runs" if found is None else f"process {found.pid} runs without a query API"
        raise NoReceiver(
            f"{who} on {session.data_dir}",
            hint="playhead up; or record with PLAYHEAD_CONTROL=on; or --url URL of another receiver",
        )
    return found.query, session.settings.token or found.key


def _name() -> str:
    """Return the name of the operator."""
    from playhead_cli.store_changes import user

    return f"{user()}@{socket.gethostname()}"[:100]


def target_of(text: str) -> tuple[str, str]:
    """Split RUN[:N]: the run, and the number of a pending request; empty: the only one."""
    target = parse_target(text)
    if target.is_file:
        raise UsageError(f"{text} is a file, not a live run", hint="playhead fork continues from it")
    return target.run, target.point


def operator_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add RUN[:N] and ``--url``, which each of these commands has."""
    run = click.argument("target", metavar="RUN[:N]", shell_complete=complete_run)
    url = click.option("--url", help="Query API of a receiver. Default: that of the data folder.")
    return run(url(function))


def lease_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--lease``: how long the run is paused."""
    return click.option(
        "--lease",
        metavar="TIME",
        default="10m",
        show_default=True,
        help="Continue automatically after this time, unless paused again.",
    )(function)


def lease_s(lease: str) -> float:
    """Return seconds of ``--lease``. `UsageError`."""
    return duration_ns(lease) / 1e9


def wait_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--wait``: how long the command waits for a pending request."""
    return click.option(
        "--wait",
        metavar="TIME",
        default=f"{WAIT_S:g}s",
        show_default=True,
        help="How long to wait for the next step.",
    )(function)


def print_state(session: Session, run: str, state: dict[str, Any]) -> None:
    """Print the control state of a run: its lease, and the pending requests."""
    if session.as_json:
        printed: PrintedControl = {"schema_version": 1, "run": run, **state}  # type: ignore[typeddict-item]
        session.print_json(printed)
        return
    for line in control_lines(run, state):
        click.echo(visible(line))
    if not state["taken"]:
        session.say("the agent has not responded yet; it will receive the command")
