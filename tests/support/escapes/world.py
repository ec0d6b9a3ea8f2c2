"""The things that a way may touch, with detection of changes."""

from __future__ import annotations

import contextlib
import ctypes
import os
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.escapes import replaying
from support.escapes.ways import FIRST_SIGNAL, HOST, PRELUDE, SIGNALS, WAYS, Way

libc = ctypes.CDLL(None, use_errno=True)

SIZE = 4096

DOMAIN = Path("/proc/sys/kernel/domainname")


def program(ways: tuple[Way, ...], world: World) -> str:
    """A program that tries all ways in order and prints nothing."""
    told = f"{str(world.out)!r}, {world.victim.pid}, {world.keys!r}, {HOST!r}"
    lines = [PRELUDE, f"OUT, VICTIM, KEYS, HOST = {told}"]
    for way in ways:
        told = f"name={way.name!r}, own={str(world.own(way))!r}, PORT={world.ports.get(way.name, 0)}"
        lines += [
            f"space = dict(globals(), SIGNAL={signal_of(way)}, {told})",
            f"try: exec({way.code!r}, space)",
            "except BaseException: pass",
        ]
    return "\n".join(lines)


def signal_of(way: Way) -> int:
    """A signal that no other way sends; 0 if it sends none."""
    return FIRST_SIGNAL + SIGNALS.index(way) if way in SIGNALS else 0


VICTIM = """
import ctypes, signal, sys
libc = ctypes.CDLL(None)
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
memory = ctypes.create_string_buffer(b"kept")
print(ctypes.addressof(memory), flush=True)
for line in sys.stdin:
    key = libc.syscall(250, 10, -4, b"user", line.strip().encode(), 0)
    print(memory.value.decode(), int(key > 0), flush=True)
"""


class World:
    """Everything that can be touched. Context manager; ``user``: its owner."""

    def __init__(self, user: int) -> None:
        self.user = user
        self.out = Path(tempfile.mkdtemp(prefix="playhead-escapes-", dir=_place()))
        self.out.chmod(0o755)
        _give(self.out, user)
        script = self.out / "victim.py"
        script.write_text(VICTIM)
        words = [sys.executable, replaying.__file__, str(user), "plain", str(script), ""]
        self.victim = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        token = self.out.name.rpartition("-")[2]
        queue = int.from_bytes(os.urandom(3)) | 1 << 24
        self.keys: dict[str, Any] = {"shm": f"/playhead-{token}", "queue": queue}
        self.ports: dict[str, int] = {}
        self._heard: set[str] = set()
        self._pipes: dict[str, int] = {}
        self._ids: dict[str, int] = {}
        self._listeners = selectors.DefaultSelector()
        self._over = threading.Event()

    def own(self, way: Way) -> Path:
        """The path for a way."""
        return self.out / way.name

    def __enter__(self) -> World:
        assert self.victim.stdout is not None
        self.keys["address"] = int(self.victim.stdout.readline())
        with contextlib.suppress(PermissionError):  # if the tests are as nice as a way would make it
            os.setpriority(os.PRIO_PROCESS, self.victim.pid, 0)
        for way in WAYS:
            self._prepare(way)
        for end in ("", "shared"):
            self._shared(end).write_text("kept")
            os.truncate(self._shared(end), SIZE)
            _give(self._shared(end), self.user)
        queue = self.keys["queue"]
        self._ids = {
            "queue": libc.msgget(queue, 0o1666),
            "segment": libc.shmget(queue, SIZE, 0o1666),
            "semaphore": libc.semget(queue, 1, 0o1666),
        }
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        self._log = _log()
        self._before = {kind: self._state(kind) for kind in {way.seen for way in WAYS}}
        self._paths = {way.name: self._state_of(way) for way in WAYS}
        return self

    def _shared(self, end: str) -> Path:
        return Path("/dev/shm" + self.keys["shm"] + end)

    def _prepare(self, way: Way) -> None:
        own = self.own(way)
        kept, folder = Path(f"{own}.kept"), Path(f"{own}.dir")
        kept.write_text("kept")
        kept.chmod(0o644)
        folder.mkdir()
        _give(kept, self.user)
        _give(folder, self.user)
        if way.seen == "fifo":
            os.mkfifo(f"{own}.fifo")
            _give(Path(f"{own}.fifo"), self.user)
            self._pipes[way.name] = os.open(f"{own}.fifo", os.O_RDWR | os.O_NONBLOCK)
            os.write(self._pipes[way.name], b"kept")
        if way.listens:
            with contextlib.suppress(OSError):  # a machine without IPv6
                self._listeners.register(self._listener(way), selectors.EVENT_READ, way.name)

    def _listener(self, way: Way) -> socket.socket:
        families = {"tcp": socket.AF_INET, "udp": socket.AF_INET, "tcp6": socket.AF_INET6}
        kind = socket.SOCK_DGRAM if way.listens in ("udp", "datagram") else socket.SOCK_STREAM
        made = socket.socket(families.get(way.listens, socket.AF_UNIX), kind)
        path = f"{self.own(way)}.sock"
        if way.listens == "abstract":
            made.bind(f"\0{self.own(way)}")
        elif way.listens in families:
            made.bind(("::1" if way.listens == "tcp6" else HOST, 0))
            self.ports[way.name] = made.getsockname()[1]
        else:
            if way.listens == "postgres":
                Path(f"{self.own(way)}.pg").mkdir()
                Path(f"{self.own(way)}.pg").chmod(0o755)
                path = f"{self.own(way)}.pg/.s.PGSQL.5432"
            made.bind(path)
            os.chmod(path, 0o666)
        if kind == socket.SOCK_STREAM:
            made.listen()
        return made

    def _listen(self) -> None:
        while not self._over.is_set():
            for key, _ in self._listeners.select(0.05):
                listener: Any = key.fileobj
                self._heard.add(key.data)
                if listener.type == socket.SOCK_STREAM:
                    listener.accept()[0].close()
                else:
                    listener.recv(99)

    def changed(self) -> set[str]:
        """Names of the ways that took effect."""
        self._over.set()
        self._thread.join()
        while any(self._heard.add(key.data) or self._take(key) for key, _ in self._listeners.select(0)):
            pass
        now = {kind: self._state(kind) for kind in self._before}
        found = set[str]()
        for way in WAYS:
            if way.seen in ("path", "fifo"):
                touched = self._state_of(way) != self._paths[way.name]
            elif way.seen == "heard":
                touched = way.name in self._heard
            elif way.seen == "signal":
                touched = bool(now["signal"] >> (signal_of(way) - 1) & 1)
            else:
                touched = now[way.seen] != self._before[way.seen]
            if touched:
                found.add(way.name)
        return found

    def _take(self, key: selectors.SelectorKey) -> bool:
        listener: Any = key.fileobj
        if listener.type == socket.SOCK_STREAM:
            listener.accept()[0].close()
        else:
            listener.recv(99)
        return True

    def _state_of(self, way: Way) -> object:
        """State of the paths of a way."""
        if way.seen == "fifo":
            data = b""
            with contextlib.suppress(BlockingIOError):
                data = os.read(self._pipes[way.name], 99)
                os.write(self._pipes[way.name], data)
            return data
        found: dict[str, object] = {}
        for path in self.out.iterdir():
            if path.name == way.name or path.name in (f"{way.name}.{end}" for end in ENDS):
                at = path.lstat()
                data = path.read_bytes() if path.is_file() else b""
                more = os.listxattr(path, follow_symlinks=False)
                mounted = os.path.ismount(path)
                found[path.name] = at.st_mode, at.st_uid, at.st_mtime, at.st_nlink, data, more, mounted
        return found

    def _state(self, kind: str) -> Any:
        pid, queue = self.victim.pid, self.keys["queue"]
        proc = Path(f"/proc/{pid}")
        if kind == "signal":
            lines = proc.joinpath("status").read_text().splitlines()
            told = [line.split()[1] for line in lines if line.startswith(("SigPnd", "ShdPnd"))]
            return int(told[0], 16) | int(told[1], 16)
        asked: dict[str, Callable[[], object]] = {
            "shm.made": self._shared("-made").exists,
            "shm.c": self._shared("-c").exists,
            "shm.written": lambda: _bytes(self._shared("")),
            "shm.shared": lambda: _bytes(self._shared("shared")),
            "queue": lambda: self._counted("msgctl", self._ids["queue"]),
            "queue.made": lambda: libc.msgget(queue + 1, 0) >= 0,
            "semaphore": lambda: libc.semctl(self._ids["semaphore"], 0, 12),
            "segment": lambda: self._attached(self._ids["segment"]),
            "key": lambda: self._told()[1],
            "memory": lambda: self._told()[0],
            "nice": lambda: os.getpriority(os.PRIO_PROCESS, pid) == 18,
            "nice.c": lambda: os.getpriority(os.PRIO_PROCESS, pid) >= 17,
            "ioprio": lambda: libc.syscall(252, 1, pid),
            "limit.core": lambda: "0 0" in _line(proc / "limits", "Max core file size"),
            "limit.files": lambda: "99 99" in _line(proc / "limits", "Max open files"),
            "affinity": lambda: sorted(os.sched_getaffinity(pid)),
            "scheduler": lambda: os.sched_getscheduler(pid),
            "oom": lambda: proc.joinpath("oom_score_adj").read_text() == "88\n",
            "oom.c": lambda: proc.joinpath("oom_score_adj").read_text() in ("77\n", "88\n"),
            "hostname": socket.gethostname,
            "domainname": DOMAIN.read_text,
            "cgroup": self._group().exists,
            "kmsg": lambda: self.keys["shm"].encode() in _read(self._log),
        }
        return asked[kind]() if kind in asked else None

    def _told(self) -> list[str]:
        stdin, stdout = self.victim.stdin, self.victim.stdout
        assert stdin is not None and stdout is not None
        stdin.write(f"{self.keys['shm']}\n")
        stdin.flush()
        return stdout.readline().split()

    @staticmethod
    def _counted(call: str, id: int) -> int:
        found = (ctypes.c_ulong * 32)()
        libc[call](id, 2, found)
        return hash(tuple(found))

    @staticmethod
    def _attached(id: int) -> bytes:
        attach = libc["shmat"]
        attach.restype = ctypes.c_void_p
        address = attach(id, None, 0)
        data = ctypes.string_at(address, 1)
        libc.shmdt(ctypes.c_void_p(address))
        return data

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self.victim.kill()
        self.victim.communicate()
        for key in list(self._listeners.get_map().values()):
            key.fileobj.close()  # pyright: ignore[reportAttributeAccessIssue]
        self._listeners.close()
        for pipe in (*self._pipes.values(), *([self._log] if self._log >= 0 else [])):
            os.close(pipe)
        for end in ("", "shared", "-made", "-c"):
            self._shared(end).unlink(missing_ok=True)
        for call, id in (("msgctl", "queue"), ("shmctl", "segment")):
            libc[call](self._ids[id], 0, None)
        libc.semctl(self._ids["semaphore"], 0, 0)
        left = libc.msgget(self.keys["queue"] + 1, 0)
        if left >= 0:
            libc.msgctl(left, 0, None)
        self._put_back()
        shutil.rmtree(self.out)

    def _put_back(self) -> None:
        """Restore the state of the machine."""
        if self._state("hostname") != self._before["hostname"]:
            socket.sethostname(self._before["hostname"])
        if self._state("domainname") != self._before["domainname"]:
            DOMAIN.write_text(self._before["domainname"])
        if self._state("cgroup"):
            self._group().rmdir()

    def _group(self) -> Path:
        return Path("/sys/fs/cgroup/cpu", self.keys["shm"][1:])


ENDS = ("kept", "moved", "linked", "dir", "dat", "bak")
"""Endings of the names that a way may create at its path."""


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _line(path: Path, begins: str) -> str:
    found = next(line for line in path.read_text().splitlines() if line.startswith(begins))
    return " ".join(found.removeprefix(begins).split())


def _log() -> int:
    """The kernel log, positioned at its end; -1 if it is not readable."""
    try:
        log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return -1
    os.lseek(log, 0, os.SEEK_END)
    return log


def _read(log: int) -> bytes:
    lines: list[bytes] = []
    with contextlib.suppress(OSError):
        while log >= 0:
            lines.append(os.read(log, 8192))
    return b"".join(lines)


def _place() -> str:
    """A folder outside all folders of which a replay may change a copy."""
    for folder in ("/srv", "/opt", str(Path.home()), "/var/tmp"):
        if os.access(folder, os.W_OK) and os.stat(folder).st_mode & 0o005:
            return folder
    raise AssertionError("there is no folder to try it in")


def _give(path: Path, user: int) -> None:
    if os.geteuid() == 0:
        os.lchown(path, user, user)
