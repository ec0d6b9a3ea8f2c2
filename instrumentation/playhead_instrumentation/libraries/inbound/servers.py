"""Patch servers, so that an application is covered when it is handed to a server.

A server is part of the outside world. What it does for itself (its event loop, its timers, its log) is
not part of the program and happens in the unrecorded lane. Loading the application is the boot of the
program; it happens in the lane of the main thread, whatever the server's own lane is.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from playhead_instrumentation.libraries.inbound.asgi import CoveredAsgi
from playhead_instrumentation.libraries.inbound.wsgi import CoveredWsgi
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.patching.patches import PATCHES, required
from playhead_instrumentation.session.session import current


def cover_asgi(app: Any, told: str = "") -> Any:
    """Return ``app`` covered; an application that is covered already is returned as it is."""
    return app if isinstance(app, CoveredAsgi) else CoveredAsgi(app, told)


def cover_wsgi(app: Any, told: str = "") -> Any:
    """Return ``app`` covered; an application that is covered already is returned as it is."""
    return app if isinstance(app, CoveredWsgi) else CoveredWsgi(app, told)


def _serve(serve: Any, *args: Any, **kwargs: Any) -> Any:
    """Layer of a function that serves until it is told to stop."""
    _about_to_serve()
    with lanes.Shadow():
        return serve(*args, **kwargs)


async def _serve_async(serve: Any, *args: Any, **kwargs: Any) -> Any:
    _about_to_serve()
    with lanes.Shadow():
        return await serve(*args, **kwargs)


def _about_to_serve() -> None:
    session = current()
    if session is not None and not lanes.in_own_thread():
        session.driver.serves()


def patch_uvicorn_reload(module: ModuleType) -> None:
    """Patch what restarts uvicorn when files change."""
    PATCHES.around(required(module, "BaseReload"), "run", _serve)


def patch_uvicorn_workers(module: ModuleType) -> None:
    """Patch what starts several uvicorn servers."""
    PATCHES.around(required(module, "Multiprocess"), "run", _serve)


def patch_uvicorn_server(module: ModuleType) -> None:
    """Patch the uvicorn server."""
    PATCHES.around(required(module, "Server"), "serve", _serve_async)


def patch_uvicorn_config(module: ModuleType) -> None:
    """Patch where uvicorn loads the application."""
    PATCHES.around(required(module, "Config"), "load", _load_uvicorn)


def _load_uvicorn(load: Any, config: Any) -> None:
    with lanes.Entered(lanes.MAIN):
        load(config)
    told = config.app if isinstance(config.app, str) else ""
    # Cover inside the wrappers of uvicorn, since a replay has no uvicorn.
    holder, name = config, "loaded_app"
    while type(inner := getattr(holder, name)).__module__.startswith(("uvicorn.", "a2wsgi.")):
        holder, name = inner, "app"
    cover = cover_wsgi if config.interface == "wsgi" else cover_asgi
    setattr(holder, name, cover(inner, f"{told}()" if told and config.factory else told))


def patch_hypercorn_wrappers(module: ModuleType) -> None:
    """Patch what holds the application in hypercorn."""
    PATCHES.around(required(module, "ASGIWrapper"), "__init__", _cover_asgi)
    PATCHES.around(required(module, "WSGIWrapper"), "__init__", _cover_wsgi)


def _cover_asgi(init: Any, holder: Any, *args: Any, **kwargs: Any) -> None:
    init(holder, *args, **kwargs)
    holder.app = cover_asgi(holder.app)


def _cover_wsgi(init: Any, holder: Any, *args: Any, **kwargs: Any) -> None:
    init(holder, *args, **kwargs)
    holder.app = cover_wsgi(holder.app)


def patch_hypercorn_run(module: ModuleType) -> None:
    """Patch the hypercorn server."""
    PATCHES.around(module, "worker_serve", _serve_async)


def patch_gunicorn_arbiter(module: ModuleType) -> None:
    """Patch what starts the workers of gunicorn."""
    PATCHES.around(required(module, "Arbiter"), "run", _serve)


def patch_gunicorn_worker(module: ModuleType) -> None:
    """Patch where a gunicorn worker loads the application."""
    PATCHES.around(required(module, "Worker"), "load_wsgi", _load_wsgi)


def patch_gunicorn_asgi(module: ModuleType) -> None:
    """Patch where a gunicorn worker for ASGI loads the application."""
    PATCHES.around(required(module, "ASGIWorker"), "load_wsgi", _load_asgi)


def _load_wsgi(load: Any, worker: Any) -> None:
    _load_gunicorn(load, worker, "wsgi", cover_wsgi)


def _load_asgi(load: Any, worker: Any) -> None:
    _load_gunicorn(load, worker, "asgi", cover_asgi)


def _load_gunicorn(load: Any, worker: Any, attribute: str, cover: Any) -> None:
    with lanes.In(lanes.MAIN):
        load(worker)
    if any(one.__module__.startswith("uvicorn") for one in type(worker).__mro__):
        return  # it hands the application on to uvicorn
    told = str(getattr(worker.app, "app_uri", None) or "")
    setattr(worker, attribute, cover(getattr(worker, attribute), told))
    worker.run = functools.partial(_serve, worker.run)


def patch_werkzeug(module: ModuleType) -> None:
    """Patch the server of Flask's command line."""
    owner = required(module, "BaseWSGIServer")
    PATCHES.around(owner, "__init__", _cover_wsgi)
    PATCHES.around(owner, "serve_forever", _serve)


def patch_wsgiref(module: ModuleType) -> None:
    """Patch the server of the standard library."""
    owner = required(module, "WSGIServer")
    PATCHES.around(owner, "set_app", _set_app)
    PATCHES.around(owner, "serve_forever", _serve)


def _set_app(set_app: Any, server: Any, application: Any) -> None:
    set_app(server, cover_wsgi(application))
