"""Replaces this process by another program; any Python that it is or starts is recorded."""

from __future__ import annotations

import os
import signal
import sys

from playhead_instrumentation.bootstrap.children.search_path import with_site
from playhead_instrumentation.bootstrap.off import switched_off


def become(words: list[str]) -> None:
    """Execute the program in ``words``, which may begin with ``--``. Never returns."""
    words = words[1:] if words[:1] == ["--"] else words
    if not switched_off():
        os.environ["PYTHONPATH"] = with_site(os.environ)
    for number in signal.SIGPIPE, signal.SIGXFSZ:
        signal.signal(number, signal.SIG_DFL)  # this interpreter ignores them; the program shall not
    try:
        os.execvp(words[0], words)
    except OSError as problem:
        sys.exit(f"playhead: {words[0]} cannot be started: {problem.strerror}")
