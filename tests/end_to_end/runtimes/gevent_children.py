"""Greenlets start children at the same time; what each of them says."""

# ruff: noqa: E402

from gevent import monkey

monkey.patch_all()

import subprocess
import sys

import gevent


def say(number: int) -> None:
    subprocess.run([sys.executable, "-S", "-c", f"print({number})"], check=True)
    sys.stdout.flush()


gevent.joinall([gevent.spawn(say, number) for number in range(3)], raise_error=True)
print("done")
