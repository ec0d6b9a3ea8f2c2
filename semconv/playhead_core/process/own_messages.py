"""Messages of playhead on stderr. They do not pass `logging`, which belongs to the program.

Handlers of the program would print them among its own records, count them as its errors, or send them
away. A thread of playhead would take locks of `logging`, which eventlet replaces, and would get an entry
in `threading` for a log record.
"""

from __future__ import annotations

import os
import sys
import traceback
from typing import Final

PREFIX: Final = "playhead: "
DEBUG: Final = bool(os.environ.get("PLAYHEAD_DEBUG"))
"""Whether internal problems are printed, too. They have no effect on the program."""

_write: Final = os.write  # the original: a recording covers it for the program


def write_message(text: str) -> None:
    """Write ``text`` to stderr, or nothing if that is closed or full. Takes no lock.

    A file that the program opened after it closed stderr may have the number 2. Python opens files that
    no child inherits; streams, and what `os.dup2` puts in their place, are inherited.
    """
    try:
        if os.get_inheritable(2):
            _write(2, text.encode("utf-8", "backslashreplace"))
    except OSError:
        return


def prefixed(text: str) -> str:
    r"""Return ``text`` with `PREFIX` before each line.

    >>> prefixed("one\ntwo")
    'playhead: one\nplayhead: two\n'
    """
    return "".join(f"{PREFIX}{line}\n" for line in text.splitlines())


class Log:
    """Prints messages with the name of a module. May be used in any thread, and in a signal handler."""

    def __init__(self, name: str) -> None:
        """``name``: of the module; only messages of `debug` have it."""
        self._name = name

    def debug(self, text: str, *values: object, exc_info: BaseException | bool = False) -> None:
        """Print an internal problem, if `DEBUG`. ``text``: with places for ``values`` as in `logging`.

        ``exc_info``: print the stack trace of an exception, too; True: of the current one.
        """
        if DEBUG:
            self.warning(f"{self._name}: {text}", *values, exc_info=exc_info)

    def warning(self, text: str, *values: object, exc_info: BaseException | bool = False) -> None:
        """Print a problem that the user should know of."""
        shown = (text % values if values else text).removeprefix(PREFIX)
        problem = sys.exc_info()[1] if exc_info is True else exc_info or None
        if problem is not None:
            shown = f"{shown}\n{''.join(traceback.format_exception(problem))}"
        write_message(prefixed(shown))
