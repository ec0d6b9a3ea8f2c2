"""The end of the process: its exit status, and hooks for the ends that run no `atexit` handler.

The recording has to write its exit fact and deliver what it holds before the process is gone. `atexit`
covers a regular end only. `os._exit` and a signal that the process raises against itself, as uvicorn
does after a SIGTERM, skip it: without these hooks the last facts would stay in the spool, and would be
lost with the disk of a container.
"""

from __future__ import annotations

import _sitebuiltins
import os
import signal
import sys
import threading
from collections.abc import Callable
from importlib.machinery import BuiltinImporter
from types import TracebackType
from typing import Any, Final

from playhead_core.facts import ErrorRecord
from playhead_instrumentation.patching.patches import PATCHES
from playhead_instrumentation.patching.program import Program
from playhead_instrumentation.patching.runtime import RUNTIME
from playhead_instrumentation.recorder.exceptions import stored_module


class ExitStatus:
    """Keeps the argument of `sys.exit` in the main thread, which the interpreter does not expose."""

    def __init__(self) -> None:
        self.status: Any = None
        """Argument of `sys.exit`; None where it was not called, or an exception ends the process."""

    def watch(self) -> None:
        """Patch `sys.exit`, and the `exit` and `quit` of the module `site`."""
        PATCHES.attempt("exit", lambda: PATCHES.around(sys, "exit", self._leave))
        PATCHES.attempt("quit", lambda: PATCHES.around(_sitebuiltins.Quitter, "__call__", self._quit))

    def _leave(self, leave: Any, status: Any = None, /) -> None:
        if threading.current_thread() is threading.main_thread():
            self.status = status
        leave(status)

    def _quit(self, leave: Any, quitter: object, code: Any = None) -> None:
        if threading.current_thread() is threading.main_thread():
            self.status = code
        leave(quitter, code)

    def known(self) -> tuple[int, ErrorRecord | None]:
        """Exit code and uncaught exception of a process that is ending."""
        error: BaseException | None = getattr(sys, "last_value", None)
        if error is not None:
            cls = type(error)
            self.status = None
            code = 128 + signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
            return code, ErrorRecord(stored_module(cls), cls.__qualname__, _text(error))
        if self.status is None and (problem := unopened_script()) is not None:
            return 2, ErrorRecord("builtins", type(problem).__qualname__, _text(problem))
        code = code_of(self.status)
        reason = _text(self.status)
        return code, ErrorRecord("builtins", "SystemExit", reason) if code else None


def unopened_script() -> OSError | None:
    """The error because of which the interpreter could not open its script, so that no program ran.

    The interpreter prints it and exits with 2, without an exception. It sets the loader of ``__main__``
    when it has opened the script.
    """
    main, program = sys.modules.get("__main__"), Program.of_interpreter()
    is_script = sys.argv[:1] == [program.name] and program.name not in ("", "-", "-c")
    if RUNTIME.program or not is_script or getattr(main, "__loader__", None) is not BuiltinImporter:
        return None
    try:
        open(program.name, "rb").close()
    except OSError as problem:
        return problem
    return None


def end_by_interrupt() -> None:
    """End the process by SIGINT after an uncaught interrupt. Call it last at exit.

    The interpreter notes such an interrupt at the end of the program's own code. It forgets it as soon
    as any source text is evaluated, as `dataclasses` and `namedtuple` do in modules that are imported at
    exit (`run_eval_code_obj` in CPython's ``pythonrun.c``). The process would then exit with 1.
    """
    if getattr(sys, "last_type", None) is not KeyboardInterrupt or sys.flags.interactive:
        return
    if not _left_program(getattr(sys, "last_traceback", None)):
        return  # a console has caught and printed it
    try:
        exec("raise KeyboardInterrupt", {})
    except KeyboardInterrupt:
        pass  # the interpreter has noted it again


def _left_program(trace: TracebackType | None) -> bool:
    if trace is None:
        return False
    frame, code = trace.tb_frame, trace.tb_frame.f_code
    if code.co_name != "<module>":
        return code.co_name == "_run_module_as_main"
    typed = code.co_filename.startswith("<") and code.co_filename != "<string>"
    return not typed and frame.f_globals.get("__name__") == "__main__"


def code_of(status: object) -> int:
    """The exit code of ``sys.exit(status)``."""
    if status is None:
        return 0
    return status & 0xFF if isinstance(status, int) else 1


def _text(error: object) -> str:
    try:
        return str(error)
    except Exception:
        return ""


def watch_exit(end: Callable[[int], object]) -> None:
    """Patch `os._exit`: call ``end``, which must not raise, with the exit status first.

    A forked child is left alone: it often ends this way so that exit hooks of its parent do not run.
    """
    process = os.getpid()

    def leave(call: Any, status: int) -> None:
        if os.getpid() == process:
            end(status)
        call(status)

    PATCHES.attempt("exit", lambda: PATCHES.around(os, "_exit", leave))


_NAMES: Final = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGABRT", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGTERM")
_ENDING: Final = frozenset(getattr(signal, name) for name in _NAMES if hasattr(signal, name))
"""Signals that programs raise, and that end a process without a handler."""


def watch_signals(deliver: Callable[[], object]) -> None:
    """Patch `signal.raise_signal`: call ``deliver`` before a signal that ends the process."""

    def raised(call: Any, number: int, /) -> None:
        if _ends(number):
            deliver()
        call(number)

    PATCHES.attempt("signals", lambda: PATCHES.around(signal, "raise_signal", raised))


def _ends(number: int) -> bool:
    """Whether a signal that is raised now ends the process."""
    if number not in _ENDING or signal.getsignal(number) is not signal.SIG_DFL:
        return False
    return number not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
