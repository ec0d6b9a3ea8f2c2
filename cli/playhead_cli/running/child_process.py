"""Runs the agent as a child process with our terminal, our streams and our signals."""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Generator, Iterable, Mapping, Sequence
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
"""Signals that are passed to the agent while it runs."""

FROM_TERMINAL = frozenset((signal.SIGINT, signal.SIGQUIT, signal.SIGHUP))
"""Signals that a terminal sends to the whole process group, so the agent has received them already."""

IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that every Python interpreter ignores, and that are restored for the agent."""

WITHOUT_SIGCHLD = """
import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for number in signal.SIGPIPE, signal.SIGXFSZ:
    signal.signal(number, signal.SIG_DFL)
os.environ["LC_CTYPE"] = sys.argv[1]
if not sys.argv[1]:
    del os.environ["LC_CTYPE"]
os.execv(sys.argv[2], sys.argv[2:])
"""
"""Program that runs a command with SIGCHLD ignored, which `os.posix_spawn` cannot do.

Its first argument is the ``LC_CTYPE`` of the command, because its own interpreter may change it.
"""

SENT_BY_PROCESS = 0
"""``si_code`` of a signal sent by ``kill``; signals of the kernel have a larger one."""


@contextmanager
def signals_held() -> Generator[set[int]]:
    """Keep the agent's signals from interrupting this process. Yields what it blocked before.

    Enter before any thread is started, because threads inherit the signal mask.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*FORWARDED, signal.SIGCHLD})
    try:
        yield set(before)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def run_child(
    words: Sequence[str], environ: Mapping[str, str], blocked: Iterable[int] = ()
) -> tuple[int, int]:
    """Run the agent to its end. Returns its pid and its exit status, negative for a signal.

    ``blocked``: signals that the agent finds blocked.

    Must be called within `signals_held`. The child is in our process group and has our streams, so a
    terminal stays a terminal. A signal that another process sends to this process is passed on to the
    child. If one arrived before the child existed, it ends this process instead, and the pid is 0.
    OSError when the child cannot be started.
    """
    if early := _waiting(FORWARDED):
        return 0, -early
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        # This process would get no exit status. The agent must find the signal ignored all the same.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        locale = environ.get("LC_CTYPE", "")
        words = [sys.executable, "-I", "-S", "-c", WITHOUT_SIGCHLD, locale, *words]
    pid = os.posix_spawn(
        words[0], list(words), environ, setsigmask=list(blocked), setsigdef=IGNORED_BY_PYTHON
    )
    if early := _waiting(FROM_TERMINAL):
        os.kill(pid, early)  # it may have arrived before the child joined our group
    while True:
        number, sent = _next_signal()
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return pid, os.waitstatus_to_exitcode(status)
        if number != signal.SIGCHLD and sent:
            os.kill(pid, number)


def _waiting(wanted: frozenset[signal.Signals]) -> int:
    """One of the pending blocked signals; 0 if there is none."""
    come = signal.sigpending() & wanted
    return int(signal.sigwait(come)) if come else 0


def _next_signal() -> tuple[int, bool]:
    """Return the next signal, and whether it must be passed on."""
    wanted = {*FORWARDED, signal.SIGCHLD}
    if hasattr(signal, "sigwaitinfo"):
        info: Any = signal.sigwaitinfo(wanted)
        number, by_process = int(info.si_signo), info.si_code <= SENT_BY_PROCESS
        return number, by_process or not _reached_group(number)
    number = int(signal.sigwait(wanted))
    return number, not _reached_group(number)


def _reached_group(number: int) -> bool:
    """Return whether a signal of the system has reached the whole process group.

    When a terminal hangs up, the system tells the leader of its session alone.
    """
    is_leader = os.getsid(0) == os.getpid()
    return number in FROM_TERMINAL and not (number == signal.SIGHUP and is_leader)


def die_as(exit_status: int) -> int:
    """End as the agent did: by the same signal if a signal ended it, else return the same status."""
    if exit_status >= 0:
        return exit_status
    number = -exit_status
    sys.stdout.flush()
    sys.stderr.flush()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # one core dump, that of the agent, is enough
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number
