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
from typing import Final

from playhead_instrumentation.patching.attribution.owners import Owner
from playhead_instrumentation.patching.attribution.readers import (
    AGENT,
    ASKED,
    MACHINERY,
    THROUGH,
    Readers,
    is_below,
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
    (
        "anthropic anyio fsspec google.genai mistralai openai playhead_checkpoint.receiver_link "
        "playhead_checkpoint.sqlite_file sniffio trio uvloop"
    ).split()
)
"""Packages that open files on behalf of their caller: an upload, a download."""

MACHINE: Final = frozenset(("distro", "platform"))
"""Modules that look up the machine, for the headers of an SDK or for the program."""

BETWEEN: Final = frozenset(
    (
        "opentelemetry.instrumentation.asyncio opentelemetry.instrumentation.threading "
        "playhead_instrumentation.scheduler.ledger "
        "playhead_instrumentation.scheduler.hooks.waits "
        "playhead_instrumentation.patching.lane_hooks playhead_instrumentation.patching.lanes "
        "playhead_instrumentation.patching.patches wrapt"
    ).split()
)
"""Modules between a thread and the function that it was given to run."""


class _OfFiles(Readers):
    """For operations on files."""

    __slots__ = ()

    def _of_file(self, name: str, owner: Owner, module: str) -> int:
        if name.startswith("<frozen importlib"):
            return MACHINERY  # even before its modules have their names
        return self._of(module)

    def _of_module(self, module: str, top: str) -> int:
        if module in BETWEEN or top in BETWEEN:
            return THROUGH
        if top in OWN_ENDS:
            return MACHINERY
        if top in MACHINE:
            return ASKED
        if top in FOR_THE_PROGRAM or top in sys.stdlib_module_names or top.startswith("_frozen"):
            return THROUGH
        return MACHINERY if is_below(top) else AGENT

    def _at_bottom(self) -> bool:
        return True


_files: Final = _OfFiles()

PLACES: Final = _files.places
"""Known places of users of files, by file name."""

by_agent: Final = _files.by_agent
"""Whether the code of a frame uses files on behalf of the program."""


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
