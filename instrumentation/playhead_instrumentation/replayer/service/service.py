"""Sends the requests of a tape to the application that received them, without a network.

A marked function (`playhead.run`) is called with the inputs that the tape holds.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import os
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from playhead_core.errors import ReplayFailed
from playhead_instrumentation.libraries.common import values
from playhead_instrumentation.libraries.inbound.applications import IMPORTED, MAIN
from playhead_instrumentation.libraries.inbound.exchange import MARKED
from playhead_instrumentation.libraries.inbound.servers import cover_asgi, cover_wsgi
from playhead_instrumentation.patching.lanes import Shadow
from playhead_instrumentation.patching.program import Program
from playhead_instrumentation.recorder.decision import Played
from playhead_instrumentation.recorder.driver import Driver, Served
from playhead_instrumentation.replayer.service.asgi import AsgiServer, rest
from playhead_instrumentation.replayer.service.named_application import (
    application_at,
    require_importable,
)
from playhead_instrumentation.replayer.service.wsgi import serve as serve_wsgi
from playhead_instrumentation.session import session
from playhead_semconv import attributes as a


class Service:
    """An application and the requests that it is to serve."""

    def __init__(self, driver: Driver, program: Program, headers: Mapping[str, str]) -> None:
        """``headers``: replace the recorded headers of the requests."""
        for value in headers.values():
            driver.redactor.learn(value)
        self._headers = headers
        self._driver = driver
        self._program = program
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self) -> None:
        """Load the application as recorded, and send the requests. `ReplayFailed` where it is not found.

        In a fork, whose exit status tells how it went, `SystemExit` where a request fails.
        """
        self._serve()
        failed, running = self._driver.failed_requests, session.current()
        if failed and running is not None and running.mode in ("fork", "resume"):
            sys.exit("; ".join(failed))

    def _serve(self) -> None:
        requests = self._driver.requests
        details = requests[0].exchange.ask.details
        interface = details.get(a.PLAYHEAD_INBOUND_INTERFACE)
        app = self._load(
            str(details.get(a.PLAYHEAD_INBOUND_APPLICATION, "")),
            str(details.get(a.PLAYHEAD_INBOUND_FOLDER, "")),
            marked=interface == MARKED,
        )
        if interface == MARKED:
            self._driver.booted()
            call_marked(self._driver, app, requests)
            return
        if interface == "wsgi":
            self._driver.booted()
            with Shadow():
                for played in requests:
                    serve_wsgi(cover_wsgi(app), played, self._headers)
            return
        with Shadow():
            # Not closed: what the lifespan does at its end does not belong to these requests.
            self._loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self._loop)
            self._loop.set_exception_handler(lambda loop, context: None)
            server = AsgiServer(self._driver, cover_asgi(app), self._headers)
            self._loop.run_until_complete(server.serve(requests))

    def _load(self, spelt: str, folder: str, *, marked: bool) -> Any:
        module, _, path = spelt.partition(":")
        if not path:
            raise ReplayFailed(
                "nothing says how the application is loaded: no module held it when it was recorded",
                hint="make it an attribute of a module: app = create_app()",
            )
        sys.argv = [*self._program.words()]
        found = self._main() if module == MAIN else self._imported(module, folder)
        return application_at(found, path, marked=marked)

    def _imported(self, module: str, folder: str) -> ModuleType:
        sys.path.insert(0, os.path.normpath(os.path.join(os.getcwd(), folder)))
        require_importable(module)
        try:
            return importlib.import_module(module)
        except ModuleNotFoundError as problem:
            if problem.name and module.startswith(problem.name):
                raise ReplayFailed(
                    f"there is no module {module} in {sys.path[0]}",
                    hint="say where the program lies: playhead replay RUN --cwd FOLDER",
                ) from problem
            raise

    def _main(self) -> ModuleType:
        code, main = self._program.loaded(IMPORTED)
        sys.modules[MAIN] = sys.modules[IMPORTED] = main
        try:
            exec(code, main.__dict__)
        except Served:
            pass
        return main


def call_marked(driver: Driver, function: Any, requests: Sequence[Played]) -> None:
    """Call ``function`` with one input after the other.

    `ReplayFailed` where the tape does not hold an input.
    """
    for played in requests:
        args, kwargs = _input_of(played)
        try:
            result = function(*args, **kwargs)
            if inspect.isawaitable(result):
                asyncio.run(_to_its_end(driver, result))
        except Exception:
            continue  # on the tape


async def _to_its_end(driver: Driver, result: Any) -> None:
    try:
        await result
    finally:
        await rest(driver)


def _input_of(played: Played) -> tuple[list[Any], dict[str, Any]]:
    key = played.exchange.ask.key
    if not played.exchange.parts:
        raise ReplayFailed(f"the tape does not hold what {key} was given")
    try:
        given = values.read(played.part(0))
        return list(given["args"]), dict(given["kwargs"])
    except Exception as problem:
        raise ReplayFailed(
            f"{key} cannot be called again: its input cannot be kept on a tape",
            cause=str(problem) or type(problem).__name__,
            hint="give it plain values: texts, numbers, lists, dictionaries, dataclasses",
        ) from problem
