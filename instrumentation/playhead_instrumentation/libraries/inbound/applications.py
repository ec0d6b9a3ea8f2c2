"""Find a name for a served application, so that another process can load it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final, NamedTuple

from playhead_instrumentation.session.agent_name import module_name

MAIN: Final = "__main__"

IMPORTED: Final = "__mp_main__"
"""Name of the main module if it is imported instead of run, as `multiprocessing` does."""

FACTORIES: Final = ("create_app", "make_app")
"""Functions of a module that make its application, if no attribute holds the application."""


AROUND: Final = {"werkzeug.debug": "app", "django.contrib.staticfiles.handlers": "application"}
"""Wrapper types of development servers → their attribute that holds the application."""


class Application(NamedTuple):
    """An application, as a replay finds it."""

    spelt: str
    """``module:attribute``, with ``()`` after it for a factory; empty if no name leads to it."""
    folder: str
    """Where its module was found: a folder of the search path, below the working folder or absolute."""

    @property
    def name(self) -> str:
        """Name of the agent that it is, by its module; empty for the main program."""
        module = self.spelt.partition(":")[0]
        return "" if module in ("", MAIN) else module_name(module)


def once(app: Any, told: str = "") -> Callable[[], Application]:
    """Return a function that looks ``app`` up on its first call.

    ``told``: the name that the server was given.
    """
    found: list[Application] = []

    def application() -> Application:
        if not found:
            found.append(application_of(app, told))
        return found[0]

    return application


def application_of(app: Any, told: str = "") -> Application:
    """Return how to find ``app`` again. ``told``: its name, if that is known."""
    spelt = told or ("" if app is None else _spelt(app))
    if spelt.startswith(f"{IMPORTED}:"):
        spelt = MAIN + spelt.removeprefix(IMPORTED)
    return Application(spelt, _folder_of(sys.modules.get(spelt.partition(":")[0])))


def _spelt(app: Any) -> str:
    wrapper = type(app).__module__
    if wrapper in AROUND:
        app = getattr(app, AROUND[wrapper], app)
    spelt = _attribute(app)
    if spelt:
        return spelt
    home = getattr(app, "import_name", "")
    for factory in FACTORIES:
        if callable(getattr(sys.modules.get(home), factory, None)):
            return f"{home}:{factory}()"
    return ""


def _attribute(app: Any) -> str:
    """Return the module attribute that holds ``app``, if possible in the module that made it."""
    found: list[tuple[int, str]] = []
    for name, module in list(sys.modules.items()):
        for attribute, value in list(getattr(module, "__dict__", {}).items()):
            if value is app:
                made_here = getattr(app, "import_name", getattr(app, "__module__", "")) == name
                found.append((0 if made_here else 2 if name == MAIN else 1, f"{name}:{attribute}"))
    return min(found, default=(0, ""))[1]


def _folder_of(module: ModuleType | None) -> str:
    if module is None or module.__name__ == MAIN:
        return ""
    top = sys.modules.get(module.__name__.partition(".")[0], module)
    path = getattr(top, "__file__", None)
    if not path:
        places = list(getattr(top, "__path__", ()))
        path = os.path.join(places[0], "") if places else ""
    if not path:
        return ""
    inside = os.path.basename(path).startswith("__init__.") or path.endswith(os.sep)
    folder = os.path.dirname(os.path.dirname(path) if inside else os.path.abspath(path))
    cwd = os.getcwd()
    near = os.path.relpath(folder, cwd)
    return folder if near.startswith(os.pardir) else near
