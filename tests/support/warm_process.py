"""``python -m support.warm_process CONTROL``: runs commands of `support.warm`, each in a fork of itself.

A request is a message of JSON with four descriptors: the standard streams of the command, and a socket
that is told the process id, the modules that the command imported, and its exit status.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import socket
import sys
import threading
import time
from contextlib import suppress
from typing import Any

PACKAGE = "playhead_cli"
LARGEST_BYTES = 1 << 20
DESCRIPTORS = 4


def serve(control: socket.socket) -> None:
    """Fork for each request, until nobody can send one any more. Returns in the process of a command."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, LARGEST_BYTES, DESCRIPTORS)
        if not message:
            os._exit(0)
        request = json.loads(message)
        for name in request["imports"]:
            with suppress(ImportError):
                importlib.import_module(name)
        gc.freeze()  # otherwise each fork looks through all modules once more when it ends
        assert len(os.listdir("/proc/self/task")) == 1, (
            "a module that was imported ahead starts a thread"
        )
        if os.fork() == 0:
            control.close()
            *streams, told = descriptors
            with socket.socket(fileno=told) as said:
                if _is_command(said):
                    _become(request, streams)
                    atexit.register(_tell_imports, said.dup(), set(sys.modules))
                    return
        for number in descriptors:
            os.close(number)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _is_command(said: socket.socket) -> bool:
    """Fork once more; the process in between tells how the command ends, and ends itself."""
    pid = os.fork()
    if pid == 0:
        return True
    tell(said, pid=pid)
    tell(said, status=os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    os._exit(0)


def _become(request: dict[str, Any], streams: list[int]) -> None:
    """Look like a process that was started for this command."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(request["environ"])
    time.tzset()
    os.chdir(request["cwd"])
    own = os.environ.get("PYTHONPATH", "")
    sys.path[:2] = [os.getcwd(), *filter(None, own.split(os.pathsep))]
    sys.argv[1:] = request["words"]


def _run() -> int:
    """Run the command in this process; its exit status."""
    try:
        runpy.run_module(PACKAGE, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def _end(status: int) -> None:
    """End as an interpreter does, but free nothing: each page of the parent would be copied for it."""
    threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status & 0xFF)


def tell(said: socket.socket, **what: Any) -> None:
    said.send(json.dumps(what).encode())


def _tell_imports(said: socket.socket, known: set[str]) -> None:
    """Modules that were imported since, in this order, but for those that bear another name."""
    tell(
        said,
        imported=[
            name
            for name, module in list(sys.modules.items())
            if name not in known and getattr(module, "__spec__", None) and module.__spec__.name == name
        ],
    )


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
    _end(_run())
