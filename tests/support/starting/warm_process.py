"""``python -m support.starting.warm_process CONTROL PACKAGE``: forks itself for each process of `warm`.

A request is a message of JSON, with the standard streams of the process and a socket. That is told the
process id, and then, as ``adopted`` says, that the process is a child of who asked, or how it ended.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from types import ModuleType
from typing import Any

from support.starting import warm_children
from support.starting.forked import LARGEST_BYTES, RECORDER

STREAMS = 3
DESCRIPTORS = 9


def serve(control: socket.socket, package: str) -> tuple[dict[str, Any], list[int], socket.socket]:
    """Fork for each request, until nobody can send one any more.

    Returns in each process that is asked for: its request, descriptors that came with it besides its
    streams, and where it says what it has imported.
    """
    told, tells = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    importlib.import_module(f"{package}.command_line" if package == RECORDER else package)
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, LARGEST_BYTES, DESCRIPTORS)
        if not message:
            os._exit(0)
        request = json.loads(message)
        _import(told)
        gc.freeze()  # otherwise the first collection in each fork copies all there is
        threads = len(os.listdir("/proc/self/task"))
        assert threads == 1, "a module that was imported ahead starts a thread"
        streams, said, more = descriptors[:STREAMS], descriptors[STREAMS], descriptors[STREAMS + 1 :]
        go, goes = os.pipe()
        between = os.fork()
        if between == 0:
            os.close(goes)
            with socket.socket(fileno=said) as asker:
                if _is_born(request, asker):
                    control.close()
                    told.close()
                    os.read(go, 1)
                    os.close(go)
                    _become(request, streams)
                    return request, more, tells
        os.close(go)
        if request["adopted"]:
            os.waitpid(between, 0)
        os.close(goes)
        with socket.socket(fileno=said) as asker:
            if request["adopted"]:
                asker.send(b"adopted")
        for number in (*streams, *more):
            os.close(number)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _is_born(request: dict[str, Any], asker: socket.socket) -> bool:
    """Fork once more. The process in between ends, so that who asked is the parent, or tells the end."""
    pid = os.fork()
    if pid == 0:
        return True
    asker.send(str(pid).encode())
    if not request["adopted"]:
        over = os.pidfd_open(pid)
        if over in select.select([over, asker], [], [])[0]:
            with suppress(BrokenPipeError):
                asker.send(str(os.waitpid(pid, 0)[1]).encode())
            os.kill(request["asker"], signal.SIGCHLD)
    os._exit(0)


def _import(told: socket.socket) -> None:
    """Import what earlier processes have imported."""
    while True:
        try:
            names = json.loads(told.recv(LARGEST_BYTES, socket.MSG_DONTWAIT))
        except BlockingIOError:
            return
        for name in names:
            with suppress(ImportError):
                importlib.import_module(name)


def _become(request: dict[str, Any], streams: list[int]) -> None:
    """Look like a process that was started for this request."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(request["environ"])
    time.tzset()
    os.chdir(request["cwd"])
    own = os.environ.get("PYTHONPATH", "")
    sys.path[:2] = [os.getcwd(), *filter(None, own.split(os.pathsep))]
    sys.orig_argv[:] = request["words"]
    sys.argv[:] = ["-m", *request["words"][3:]]
    sys.modules["__main__"] = ModuleType("__main__")


def _tell(tells: socket.socket, known: set[str]) -> None:
    """Say which modules were imported since, in this order, but for those that bear another name.

    And but for plugins of pytest, of which it rewrites the assertions before they are imported.
    """
    names = [
        name
        for name, module in list(sys.modules.items())
        if name not in known
        and not name.endswith(".plugin")
        and getattr(module, "__spec__", None)
        and module.__spec__.name == name
    ]
    if names:
        with suppress(BlockingIOError):
            tells.send(json.dumps(names).encode(), socket.MSG_DONTWAIT)


def _isolate(words: list[str]) -> None:
    """What a replay does before it becomes the program. ``words``: the folder for that, and options."""
    if words:
        folder, *options = words
        options[options.index("--parent") + 1] = str(os.getppid())
        sys.path.insert(0, os.path.dirname(folder))
        importlib.import_module("isolated.entering").enter(options)
        del sys.path[0]
        for name in [name for name in sys.modules if name.partition(".")[0] == "isolated"]:
            del sys.modules[name]


def _record(tells: socket.socket, known: set[str]) -> None:
    """Record or replay, as an interpreter does.

    Told is what was imported before anything was patched: what is imported later gets what is patched.
    """
    from playhead_instrumentation.libraries.common import installing

    watch = installing.watch

    def patch(*given: Any) -> None:
        installing.watch = watch
        _tell(tells, known)
        tells.close()
        watch(*given)

    installing.watch = patch
    gc.unfreeze()
    runpy._run_module_as_main(RECORDER)  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]


def _command(tells: socket.socket, known: set[str], package: str) -> None:
    """Run a command, and end as an interpreter does, but free nothing: pages would be copied for it."""
    atexit.register(_tell, tells, known)
    status = 0
    try:
        runpy._run_module_as_main(package)  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if status and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status & 0xFF)


if __name__ == "__main__":
    request, more, tells = serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2])
    known = set(sys.modules)
    if request["words"][2] == RECORDER:
        _isolate(request["isolated"])
        _record(tells, known)
    else:
        if more:
            warm_children.start_by_forks(request["helpers"], more)
        _command(tells, known, request["words"][2])
