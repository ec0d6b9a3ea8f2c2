"""``python alone.py COMMAND…``: run a command where nobody else listens.

In a network of its own, where Linux allows that: the ports that pages name are free there, and nothing
leaves the machine. Elsewhere it is the machine's own.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import sys

from playhead_replay.runner.isolated.namespaces import CLONE_NEWNET, unshared

GET_FLAGS, SET_FLAGS, UP = 0x8913, 0x8914, 1


def bring_up(name: str) -> None:
    """Bring a network interface up."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_:
        asked = struct.pack("16sh14x", name.encode(), 0)
        (flags,) = struct.unpack_from("h", fcntl.ioctl(any_, GET_FLAGS, asked), 16)
        fcntl.ioctl(any_, SET_FLAGS, struct.pack("16sh14x", name.encode(), flags | UP))


if __name__ == "__main__":
    if unshared(CLONE_NEWNET):
        bring_up("lo")
    os.execvp(sys.argv[1], sys.argv[1:])
