"""Decides whose file operations are recorded: those of the program and its libraries.

The standard library acts for its caller, except for what it reads for its own purposes (sources of a
traceback, certificates, locales). Threads and callbacks whose callers are all of the standard library
count as the program's too: the program handed them over.
"""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from types import FrameType
from typing import Final

from playhead_instrumentation.runtime.attribution import readers
from playhead_instrumentation.runtime.attribution.readers import (
    AGENT,
    BELOW,
    BY_MODULE,
    MACHINERY,
    THROUGH,
)

OWN_ENDS: Final = frozenset(
    (
        "_distutils_hack _pyrepl _sitebuiltins bdb ctypes encodings ensurepip gettext importlib "
        "inspect linecache locale mimetypes multiprocessing netrc pdb pkgutil pydoc pyclbr readline "
        "rlcompleter runpy site sitecustomize ssl subprocess sysconfig tokenize trace traceback "
        "tracemalloc venv warnings zipimport zoneinfo"
    ).split()
)
"""Modules of the standard library that read for their own purposes, with their submodules."""

FOR_THE_PROGRAM: Final = frozenset(
    ("anthropic anyio fsspec google.genai mistralai openai sniffio trio uvloop").split()
)
"""Packages that open files on behalf of their caller: an upload, a download."""

MACHINE: Final = frozenset(("distro", "platform"))
"""Modules that look up the machine, for the headers of an SDK or for the program."""

ASKED: Final = 5
"""Place of the modules in `MACHINE`."""

BETWEEN: Final = frozenset(
    (
        "opentelemetry.instrumentation.asyncio opentelemetry.instrumentation.threading "
        "playhead_instrumentation.determinism.scheduler.turn_ledger "
        "playhead_instrumentation.determinism.hooks.waits "
        "playhead_instrumentation.runtime.lane_hooks playhead_instrumentation.runtime.lanes "
        "playhead_instrumentation.runtime.patching wrapt"
    ).split()
)
"""Modules between a thread and the function that it was given to run."""

PLACES: Final[dict[str, int]] = {}
"""Known places, by file name."""

_modules: Final[dict[str, int]] = {}


def by_agent(frame: FrameType | None) -> bool:
    """Whether the code of ``frame`` uses files on behalf of the program."""
    while frame is not None:
        name = frame.f_code.co_filename
        place = PLACES.get(name)
        if place is None:
            module = str(frame.f_globals.get("__name__", ""))
            made = name.startswith("<") and not name.startswith("<frozen ")
            if name.startswith("<frozen importlib"):
                place = PLACES[name] = MACHINERY  # even before its modules have their names
            else:
                place = PLACES[name] = BY_MODULE if made else _place_of(module)
        if place == BY_MODULE:
            place = _place_of(str(frame.f_globals.get("__name__", "")))
        if place == ASKED:
            return readers.by_agent(frame)
        if place != THROUGH:
            return place == AGENT
        frame = frame.f_back
    return True


def _place_of(module: str) -> int:
    place = _modules.get(module)
    if place is None:
        top, _, rest = module.partition(".")
        if top == "google":  # a namespace of many packages
            top = f"google.{rest.partition('.')[0]}"
        if module in BETWEEN or top in BETWEEN:
            place = THROUGH
        elif top in OWN_ENDS:
            place = MACHINERY
        elif top in MACHINE:
            place = ASKED
        elif top in FOR_THE_PROGRAM or top in sys.stdlib_module_names or top.startswith("_frozen"):
            place = THROUGH
        else:
            place = MACHINERY if top in BELOW else AGENT
        _modules[module] = place
    return place


def _packages() -> tuple[str, ...]:
    paths = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    paths |= {*site.getsitepackages(), site.getusersitepackages()}
    if sys.prefix != sys.base_prefix:
        paths.add(sys.prefix)
    paths |= {os.path.realpath(path) for path in paths}
    return tuple(sorted(f"{path}{os.sep}" for path in paths if len(path) > 1))


PACKAGES: Final = _packages()
"""Folders of the interpreter and its installed packages: reads there are not recorded."""

DEVICES: Final = ("/dev/", "/sys/")
"""Folders whose entries are no files of the program."""
