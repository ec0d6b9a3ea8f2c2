"""Servers: where an application is handed over to one, it is covered.

A server is the world outside: what it does for itself (its loop, its timers, its log) is not the
program's doing and happens in the shadow lane. What it does to load an application is the boot of the
program, in the lane of the main thread, whatever the server's own lane is.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from playhead_instrumentation import lanes
from playhead_instrumentation.boundaries.inbound_asgi import CoveredAsgi
from playhead_instrumentation.boundaries.inbound_wsgi import CoveredWsgi
from playhead_instrumentation.patches import Patches, required
from playhead_instrumentation.session import current


def watch(patches: Patches) -> None:
    """Patch the servers, each when it is imported."""
    for module, patch in (
        ("uvicorn.config", _uvicorn_config),
        ("uvicorn.server", _uvicorn_server),
        ("uvicorn.supervisors.basereload", functools.partial(_serving, "BaseReload", "run")),
        ("uvicorn.supervisors.multiprocess", functools.partial(_serving, "Multiprocess", "run")),
        ("hypercorn.app_wrappers", _hypercorn_wrappers),
        ("hypercorn.asyncio.run", _hypercorn_run),
        ("gunicorn.arbiter", functools.partial(_serving, "Arbiter", "run")),
        ("gunicorn.workers.base", functools.partial(_gunicorn_worker, "Worker", "wsgi")),
        ("gunicorn.workers.gasgi", functools.partial(_gunicorn_worker, "ASGIWorker", "asgi")),
        ("werkzeug.serving", _werkzeug),
        ("wsgiref.simple_server", _wsgiref),
    ):
        patches.when_imported(module, module, patch)


def cover_asgi(app: Any, told: str = "") -> Any:
    """``app``, covered; once."""
    return app if isinstance(app, CoveredAsgi) else CoveredAsgi(app, told)


def cover_wsgi(app: Any, told: str = "") -> Any:
    """``app``, covered; once."""
    return app if isinstance(app, CoveredWsgi) else CoveredWsgi(app, told)


def _serves(original: Any) -> Any:
    """A function that serves until it is told to stop."""

    @functools.wraps(original)
    def serve(*args: Any, **kwargs: Any) -> Any:
        _about_to_serve()
        with lanes.Shadow():
            return original(*args, **kwargs)

    return serve


def _serves_async(original: Any) -> Any:
    @functools.wraps(original)
    async def serve(*args: Any, **kwargs: Any) -> Any:
        _about_to_serve()
        with lanes.Shadow():
            return await original(*args, **kwargs)

    return serve


def _about_to_serve() -> None:
    session = current()
    if session is not None:
        session.driver.serves()


def _serving(name: str, method: str, module: ModuleType) -> None:
    owner = required(module, name)
    setattr(owner, method, _serves(required(owner, method)))


def _uvicorn_server(module: ModuleType) -> None:
    owner = required(module, "Server")
    owner.serve = _serves_async(required(owner, "serve"))


def _uvicorn_config(module: ModuleType) -> None:
    owner = required(module, "Config")
    load = required(owner, "load")

    @functools.wraps(load)
    def load_covered(config: Any) -> None:
        with lanes.Entered(lanes.MAIN):
            load(config)
        told = config.app if isinstance(config.app, str) else ""
        # Inside of what uvicorn puts around it: a replay has no uvicorn.
        holder, name = config, "loaded_app"
        while type(inner := getattr(holder, name)).__module__.startswith(("uvicorn.", "a2wsgi.")):
            holder, name = inner, "app"
        cover = cover_wsgi if config.interface == "wsgi" else cover_asgi
        setattr(holder, name, cover(inner, f"{told}()" if told and config.factory else told))

    owner.load = load_covered


def _hypercorn_wrappers(module: ModuleType) -> None:
    for name, cover in (("ASGIWrapper", cover_asgi), ("WSGIWrapper", cover_wsgi)):
        owner = required(module, name)
        owner.__init__ = _covering(required(owner, "__init__"), cover)


def _covering(original: Any, cover: Any) -> Any:
    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self.app = cover(self.app)

    return init


def _hypercorn_run(module: ModuleType) -> None:
    names: Any = module
    names.worker_serve = _serves_async(required(module, "worker_serve"))


def _gunicorn_worker(name: str, attribute: str, module: ModuleType) -> None:
    owner = required(module, name)
    load = required(owner, "load_wsgi")

    @functools.wraps(load)
    def load_covered(worker: Any) -> None:
        with lanes.In(lanes.MAIN):
            load(worker)
        if any(one.__module__.startswith("uvicorn") for one in type(worker).__mro__):
            return  # it hands the application on to uvicorn
        told = str(getattr(worker.app, "app_uri", None) or "")
        cover = cover_asgi if attribute == "asgi" else cover_wsgi
        setattr(worker, attribute, cover(getattr(worker, attribute), told))
        worker.run = _serves(worker.run)

    owner.load_wsgi = load_covered


def _werkzeug(module: ModuleType) -> None:
    owner = required(module, "BaseWSGIServer")
    owner.__init__ = _covering(required(owner, "__init__"), cover_wsgi)
    owner.serve_forever = _serves(required(owner, "serve_forever"))


def _wsgiref(module: ModuleType) -> None:
    owner = required(module, "WSGIServer")
    set_app = required(owner, "set_app")

    @functools.wraps(set_app)
    def set_covered(server: Any, application: Any) -> None:
        set_app(server, cover_wsgi(application))

    owner.set_app = set_covered
    owner.serve_forever = _serves(required(owner, "serve_forever"))
