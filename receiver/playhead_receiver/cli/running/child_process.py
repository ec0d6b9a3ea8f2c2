"""The agent's process: started with our terminal, our streams and our signals, and left alone."""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

FORWARDED = frozenset(
    (
        signal.SIGINT,
        signal.SIGQUIT,
        signal.SIGTERM,
        signal.SIGHUP,
        signal.SIGUSR1,
        signal.SIGUSR2,
    )
)
"""Signals that are the agent's, not ours, while it runs."""

FROM_TERMINAL = frozenset((signal.SIGINT, signal.SIGQUIT, signal.SIGHUP))
"""Signals that a terminal sends to the whole group: the agent has them already."""

SENT_BY_PROCESS = 0
"""``si_code`` of a signal that ``kill`` sent; the kernel's own have a greater one."""


@contextmanager
def signals_held() -> Generator[None]:
    """Keep the agent's signals from interrupting this process.

    Enter before any thread is started: threads inherit what is held back.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*FORWARDED, signal.SIGCHLD})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def run_child(words: Sequence[str], environ: Mapping[str, str]) -> tuple[int, int]:
    """Run the agent to its end: its pid and its exit status, negative for a signal.

    To be called within `signals_held`. The child is in our process group and has our streams, so a
    terminal stays a terminal; a signal that somebody sends to this process goes on to the child. One
    that came before there was a child ends this process instead: the pid is 0 then.
    OSError when it cannot be started.
    """
    if early := _waiting(FORWARDED):
        return 0, -early
    pid = os.posix_spawn(words[0], list(words), environ, setsigmask=[], setsigdef=[signal.SIGPIPE])
    if early := _waiting(FROM_TERMINAL):
        os.kill(pid, early)  # it may have come before the child was in our group
    while True:
        number, sent = _next_signal()
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return pid, os.waitstatus_to_exitcode(status)
        if number != signal.SIGCHLD and sent:
            os.kill(pid, number)


def _waiting(wanted: frozenset[signal.Signals]) -> int:
    """One of the signals that have come and are held; 0 if there is none."""
    come = signal.sigpending() & wanted
    return int(signal.sigwait(come)) if come else 0


def _next_signal() -> tuple[int, bool]:
    """The next signal, and whether it is to be passed on."""
    wanted = {*FORWARDED, signal.SIGCHLD}
    if hasattr(signal, "sigwaitinfo"):
        info: Any = signal.sigwaitinfo(wanted)
        number, by_process = int(info.si_signo), info.si_code <= SENT_BY_PROCESS
        return number, by_process or number not in FROM_TERMINAL
    number = int(signal.sigwait(wanted))
    return number, number not in FROM_TERMINAL


def die_as(exit_status: int) -> int:
    """End as the agent did: by the same signal where it was one, else return the same status."""
    if exit_status >= 0:
        return exit_status
    number = -exit_status
    sys.stdout.flush()
    sys.stderr.flush()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # one core dump, the agent's, is enough
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number
