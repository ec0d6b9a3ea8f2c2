"""How the process ends, as far as can be known from inside."""

from __future__ import annotations

import signal
import sys
import threading
from types import TracebackType
from typing import Any

from playhead_instrumentation.runtime.patching import PATCHES
from playhead_semconv.facts import ErrorRecord


class ExitStatus:
    """Remembers what `sys.exit` was called with in the main thread. The interpreter tells nobody."""

    def __init__(self) -> None:
        self.status: Any = None
        """What `sys.exit` was called with; None where it was not, or an exception ends the process."""

    def watch(self) -> None:
        """Patch `sys.exit`."""
        PATCHES.attempt("exit", lambda: PATCHES.around(sys, "exit", self._leave))

    def _leave(self, leave: Any, status: Any = None, /) -> None:
        if threading.current_thread() is threading.main_thread():
            self.status = status
        leave(status)

    def known(self) -> tuple[int, ErrorRecord | None]:
        """Exit code, and the exception that nobody caught, in a process that is going down."""
        error: BaseException | None = getattr(sys, "last_value", None)
        if error is not None:
            cls = type(error)
            self.status = None
            code = 128 + signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
            return code, ErrorRecord(cls.__module__, cls.__qualname__, _text(error))
        code = code_of(self.status)
        reason = _text(self.status)
        return code, ErrorRecord("builtins", "SystemExit", reason) if code else None


def end_by_interrupt() -> None:
    """End the process by SIGINT where nobody caught an interrupt. To be called last at exit.

    The interpreter notes such an interrupt when the program's own code has ended, and forgets it as soon
    as any text is evaluated, as `dataclasses` and `namedtuple` do in modules that are imported at exit
    (`run_eval_code_obj` in CPython's ``pythonrun.c``). The process would exit with 1 then.
    """
    if getattr(sys, "last_type", None) is not KeyboardInterrupt or sys.flags.interactive:
        return
    if not _left_program(getattr(sys, "last_traceback", None)):
        return  # a console caught it, and printed it
    try:
        exec("raise KeyboardInterrupt", {})
    except KeyboardInterrupt:
        pass  # it is noted again


def _left_program(trace: TracebackType | None) -> bool:
    if trace is None:
        return False
    frame, code = trace.tb_frame, trace.tb_frame.f_code
    if code.co_name != "<module>":
        return code.co_name == "_run_module_as_main"
    typed = code.co_filename.startswith("<") and code.co_filename != "<string>"
    return not typed and frame.f_globals.get("__name__") == "__main__"


def code_of(status: object) -> int:
    """The exit code that ``sys.exit(status)`` makes."""
    if status is None:
        return 0
    return status & 0xFF if isinstance(status, int) else 1


def _text(error: object) -> str:
    try:
        return str(error)
    except Exception:
        return ""
