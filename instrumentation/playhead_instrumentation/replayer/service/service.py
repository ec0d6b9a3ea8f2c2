"""Sends the requests of a tape to the application that received them: a server without a network."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from playhead_core.errors import ReplayFailed
from playhead_instrumentation.libraries.inbound.applications import IMPORTED, MAIN
from playhead_instrumentation.libraries.inbound.exchange import MARKED
from playhead_instrumentation.libraries.inbound.servers import cover_asgi, cover_wsgi
from playhead_instrumentation.patching.lanes import Shadow
from playhead_instrumentation.patching.program import Program
from playhead_instrumentation.recorder.driver import Driver, Served
from playhead_instrumentation.replayer.service.asgi import AsgiServer
from playhead_instrumentation.replayer.service.function import call
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
            call(self._driver, app, requests)
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
