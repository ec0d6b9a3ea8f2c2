"""Ways in which a program may touch the world; each line of the table is one way."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any, Final

HOST: Final = "127.83.69.1"
"""Where listeners are. At 127.0.0.1 a program of another test may look for one that had their port."""

PRELUDE: Final = """
import ctypes, os, socket, struct
libc = ctypes.CDLL(None, use_errno=True)

def word(text):
    return ctypes.c_char_p(os.fsencode(text))

def made(path):
    return libc.open(word(path), os.O_CREAT | os.O_WRONLY, 0o600)

def written(path, text):
    return libc.write(libc.open(word(path), os.O_WRONLY), word(text), len(text))

def said(family, address):
    speaks = socket.socket(family)
    speaks.settimeout(2)
    speaks.connect(address)
    speaks.send(b"x")

def unix(path):
    return struct.pack("=H", 1) + os.fsencode(path)

def inet(port):
    return struct.pack("=H", 2) + struct.pack("!H4s8x", port, socket.inet_aton(HOST))

def connected(address):
    return libc.connect(libc.socket(address[0], 1, 0), address, len(address))

def pushed(address):
    import zmq
    context = zmq.Context()
    queue = context.socket(zmq.PUSH)
    queue.linger = 0
    queue.connect(address)
    queue.poll(300, zmq.POLLOUT)
    context.destroy(0)

def opened_up():
    clear = (ctypes.c_uint64 * 4)(0, 1, 0, 0)
    for path in "/", OUT, os.path.dirname(OUT):
        libc.mount(None, word(path), None, 32 | 4096, None)
        libc.syscall(442, -100, word(path), 0x8000, clear, 32)
    libc.umount2(word(os.path.dirname(OUT)), 2)
"""
"""Names available to every way: ``name`` (its own), ``OUT`` (a folder that is neither the program's
nor for temporary files), ``own`` (a path in it for this way alone), ``HOST`` and ``PORT`` (of its
listener), ``VICTIM`` (pid of a process of the same user), ``KEYS``, ``SIGNAL`` (that no other way
sends).
"""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to touch the world."""

    name: str
    code: str
    """Lines of Python."""
    seen: str = "path"
    """How it is detected: ``path`` (at ``own``), ``heard`` (by its listener), else see `World`."""
    listens: str = ""
    """Kind of the listener."""
    root: bool = False
    """Whether only root can do it."""
    named: str = ""
    """A word in the report if it takes effect because no namespace prevents it."""


def python(name: str, code: str, seen: str = "path", **more: Any) -> Way:
    """A way that Python code refuses if no namespace prevents it."""
    return Way(name, textwrap.dedent(code).strip(), seen, **more)


def in_c(name: str, code: str, seen: str = "path", **more: Any) -> Way:
    """A way that cannot be refused and is reported."""
    return python(name, code, seen, named="ctypes", **more)


def speaks(name: str, listens: str, code: str, **more: Any) -> Way:
    """A way that a listener outside notices."""
    return python(name, code, "heard", listens=listens, **more)


FILES: Final = (
    python("open", "open(own, 'w').write('x')"),
    python("open.append", "open(own + '.kept', 'a').write('x')"),
    python("_io.open", "import _io; _io.open(own, 'w').write('x')"),
    python("io.FileIO", "import io; io.FileIO(own, 'w').write(b'x')"),
    python("io.FileIO.update", "import io; io.FileIO(own + '.kept', 'r+').write(b'x')"),
    python("posix.open", "import posix; posix.open(own, os.O_CREAT | os.O_WRONLY)"),
    python("os.open.dir_fd", "os.open(name, 65, dir_fd=os.open(OUT, os.O_PATH))"),
    python("posix.truncate", "import posix; posix.truncate(own + '.kept', 0)"),
    python("posix.mkdir", "import posix; posix.mkdir(own)"),
    python("posix.rename", "import posix; posix.rename(own + '.kept', own + '.moved')"),
    python("posix.unlink", "import posix; posix.unlink(own + '.kept')"),
    python("posix.rmdir", "import posix; posix.rmdir(own + '.dir')"),
    python("posix.link", "import posix; posix.link(own + '.kept', own + '.linked')"),
    python("posix.symlink", "import posix; posix.symlink('/nowhere', own)"),
    python("posix.chmod", "import posix; posix.chmod(own + '.kept', 0o777)"),
    python("posix.utime", "import posix; posix.utime(own + '.kept', (1, 1))"),
    python("posix.chown", "import posix; posix.chown(own + '.kept', 1, 1)", root=True),
    python("posix.setxattr", "import posix; posix.setxattr(own + '.kept', 'user.a', b'x')"),
    python("posix.mkfifo", "import posix; posix.mkfifo(own)"),
    python("posix.mknod", "import posix; posix.mknod(own)"),
    python("device", "os.mknod(own, 0o20600, os.makedev(1, 3))", root=True),
    python("sqlite3", "import _sqlite3; _sqlite3.connect(own).execute('create table a (b)')"),
    python("dbm", "import dbm.dumb; dbm.dumb.open(own, 'c')['a'] = 'b'"),
    python("readline", "import readline; readline.add_history('x'); readline.write_history_file(own)"),
    python("mmap", "import mmap; mmap.mmap(os.open(own + '.kept', os.O_RDWR), 4)[:4] = b'xxxx'"),
    python("logging", "import logging as l; l.FileHandler(own).emit(l.makeLogRecord({'msg': 'x'}))"),
    python("fifo.written", "os.write(os.open(own + '.fifo', os.O_RDWR | os.O_NONBLOCK), b'x')", "fifo"),
    python("fifo.read", "os.read(os.open(own + '.fifo', os.O_RDONLY | os.O_NONBLOCK), 9)", "fifo"),
    python("link", "os.symlink(OUT, 'there'); open('there/' + name, 'w').write('x')"),
    python("proc.first", "open('/proc/1/root' + own, 'w').write('x')", root=True),
    python("proc.victim", "open(f'/proc/{VICTIM}/root' + own, 'w').write('x')"),
    in_c("libc.open", "made(own)"),
    in_c("libc.fopen", "libc.fopen(word(own), word('w'))"),
    in_c("libc.rename", "libc.rename(word(own + '.kept'), word(own + '.moved'))"),
    in_c("libc.unlink", "libc.unlink(word(own + '.kept'))"),
    in_c("libc.chmod", "libc.chmod(word(own + '.kept'), 0o777)"),
    in_c("libc.mkfifo", "libc.mkfifo(word(own), 0o600)"),
    in_c("libc.syscall", "libc.syscall(257, -100, word(own), 65, 0o600)"),
    in_c("libc.system", "libc.system(word(f'echo x > \"{own}\"'))"),
    in_c(
        "libc.fork",
        """
        child = ctypes.PyDLL(None).fork()  # keeps the interpreter's lock: a child has no other thread
        if child == 0: made(own); libc._exit(0)
        libc.waitpid(child, None, 0)
        """,
    ),
    python("apsw", "import apsw; apsw.Connection(own).execute('create table a (b)')", named="apsw"),
)

SHARED: Final = (
    python(
        "shm.made", "import _posixshmem as p; p.shm_open(KEYS['shm'] + '-made', 66, 0o600)", "shm.made"
    ),
    python("shm.written", "open('/dev/shm' + KEYS['shm'], 'r+').write('x')", "shm.written"),
    python(
        "SharedMemory",
        """
        from multiprocessing.shared_memory import SharedMemory
        SharedMemory(KEYS['shm'][1:] + 'shared').buf[4] = 1
        """,
        "shm.shared",
    ),
    in_c("libc.shm_open", "libc.shm_open(word(KEYS['shm'] + '-c'), 66, 0o600)", "shm.c"),
    in_c(
        "msgsnd",
        "libc.msgsnd(libc.msgget(KEYS['queue'], 0), struct.pack('l', 1) + b'x', 1, 0o4000)",
        "queue",
    ),
    in_c("msgget", "libc.msgget(KEYS['queue'] + 1, 0o1600)", "queue.made"),
    in_c("semctl", "libc.semctl(libc.semget(KEYS['queue'], 1, 0), 0, 16, 5)", "semaphore"),
    in_c(
        "shmat",
        """
        libc.shmat.restype = ctypes.c_void_p
        found = libc.shmget(KEYS['queue'], 0, 0)
        if found >= 0: ctypes.memset(libc.shmat(found, None, 0), 7, 1)
        """,
        "segment",
    ),
    in_c("keyring", "libc.syscall(248, word('user'), word(KEYS['shm']), word('x'), 1, -4)", "key"),
)

PROCESSES: Final = (
    python("posix.kill", "import posix; posix.kill(VICTIM, SIGNAL)", "signal"),
    python("posix.kill.group", "import posix; posix.kill(-VICTIM, SIGNAL)", "signal"),
    python("posix.killpg", "import posix; posix.killpg(VICTIM, SIGNAL)", "signal"),
    python("pidfd", "import signal as s; s.pidfd_send_signal(os.pidfd_open(VICTIM), SIGNAL)", "signal"),
    in_c("libc.kill", "libc.kill(VICTIM, SIGNAL)", "signal"),
    in_c("libc.killpg", "libc.killpg(VICTIM, SIGNAL)", "signal"),
    in_c("libc.sigqueue", "libc.sigqueue(VICTIM, SIGNAL, None)", "signal"),
    in_c("libc.tgkill", "libc.syscall(234, VICTIM, VICTIM, SIGNAL)", "signal"),
    in_c("libc.setpriority", "libc.setpriority(0, VICTIM, 17)", "nice.c"),
    python("setpriority", "os.setpriority(os.PRIO_PROCESS, VICTIM, 18)", "nice"),
    in_c("libc.oom_score_adj", "written(f'/proc/{VICTIM}/oom_score_adj', '77')", "oom.c"),
    python(
        "oom_score_adj", "import io; io.FileIO(f'/proc/{VICTIM}/oom_score_adj', 'w').write(b'88')", "oom"
    ),
    in_c("ioprio_set", "libc.syscall(251, 1, VICTIM, 3 << 13)", "ioprio"),
    in_c("libc.prlimit", "libc.prlimit(VICTIM, 7, (ctypes.c_ulong * 2)(99, 99), None)", "limit.files"),
    python("prlimit", "import resource as r; r.prlimit(VICTIM, r.RLIMIT_CORE, (0, 0))", "limit.core"),
    python("sched_setaffinity", "os.sched_setaffinity(VICTIM, {0})", "affinity"),
    python(
        "sched_setscheduler",
        "os.sched_setscheduler(VICTIM, os.SCHED_BATCH, os.sched_param(0))",
        "scheduler",
    ),
    in_c(
        "process_vm_writev",
        """
        text = ctypes.create_string_buffer(b'x')
        here, there = ((ctypes.c_void_p * 2)(at, 1) for at in (ctypes.addressof(text), KEYS['address']))
        libc.process_vm_writev(VICTIM, here, 1, there, 1, 0)
        """,
        "memory",
    ),
)

SOCKETS: Final = (
    speaks("unix", "stream", "said(socket.AF_UNIX, own + '.sock')"),
    speaks(
        "unix.datagram",
        "datagram",
        "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', own + '.sock')",
    ),
    speaks("unix.abstract", "abstract", "said(socket.AF_UNIX, '\\0' + own)"),
    python("unix.bound", "socket.socket(socket.AF_UNIX).bind(own)"),
    speaks("tcp", "tcp", "said(socket.AF_INET, (HOST, PORT))"),
    speaks("tcp6", "tcp6", "said(socket.AF_INET6, ('::1', PORT))"),
    speaks(
        "udp",
        "udp",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', (HOST, PORT))",
    ),
    speaks(
        "raw",
        "udp",
        """
        raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
        raw.sendto(struct.pack('!4H', 9, PORT, 9, 0) + b'x', (HOST, 0))
        """,
        root=True,
    ),
    speaks(
        "asyncio",
        "stream",
        "import asyncio; asyncio.run(asyncio.open_unix_connection(own + '.sock'))",
    ),
    speaks(
        "uvloop",
        "stream",
        """
        import asyncio, uvloop
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(asyncio.open_unix_connection(own + '.sock'))
        """,
    ),
    speaks("libc.unix", "stream", "connected(unix(own + '.sock'))", named="ctypes"),
    speaks("libc.abstract", "abstract", "connected(unix('\\0' + own))", named="ctypes"),
    speaks("libc.tcp", "tcp", "connected(inet(PORT))", named="ctypes"),
    speaks(
        "libc.udp",
        "udp",
        "libc.sendto(libc.socket(2, 2, 0), b'x', 1, 0, inet(PORT), 16)",
        named="ctypes",
    ),
    speaks(
        "psycopg.unix",
        "postgres",
        "import psycopg; psycopg.connect(host=own + '.pg', connect_timeout=2)",
        named="psycopg",
    ),
    speaks(
        "psycopg.tcp",
        "tcp",
        "import psycopg; psycopg.connect(host=HOST, port=PORT, connect_timeout=2)",
        named="psycopg",
    ),
    speaks("zmq.ipc", "stream", "pushed('ipc://' + own + '.sock')", named="zmq"),
    speaks("zmq.tcp", "tcp", "pushed(f'tcp://{HOST}:{PORT}')", named="zmq"),
)

MACHINE: Final = (
    in_c("remount", "opened_up(); made(own)"),
    in_c("unshare", "libc.unshare(0x10020000); opened_up(); made(own)"),
    in_c("setns", "libc.setns(os.pidfd_open(VICTIM), 0x20000); made(own)"),
    in_c("setuid", "libc.setuid(0); made(own)"),
    in_c(
        "capset",
        "libc.capset((ctypes.c_uint32 * 2)(0x20080522), (ctypes.c_uint32 * 6)(-1, -1)); made(own)",
    ),
    in_c("mount", "libc.mount(word('tmpfs'), word(own + '.dir'), word('tmpfs'), 0, None)", root=True),
    in_c(
        "open_by_handle_at",
        """
        handle, mount = (ctypes.c_int * 34)(128), ctypes.c_int()
        libc.name_to_handle_at(-100, word(own + '.kept'), handle, ctypes.byref(mount), 0)
        libc.ftruncate(libc.open_by_handle_at(libc.open(word('.'), 0), handle, 2), 0)
        """,
        root=True,
    ),
    python("cgroup", "os.mkdir('/sys/fs/cgroup/cpu/' + KEYS['shm'][1:])", "cgroup", root=True),
    in_c("kmsg", "written('/dev/kmsg', KEYS['shm'])", "kmsg", root=True),
    in_c("hostname", "libc.sethostname(word('escaped'), 7)", "hostname", root=True),
    in_c("sysctl", "written('/proc/sys/kernel/domainname', 'escaped')", "domainname", root=True),
)

WAYS: Final = (*FILES, *SHARED, *PROCESSES, *SOCKETS, *MACHINE)

SIGNALS: Final = [way for way in WAYS if way.seen == "signal"]

FIRST_SIGNAL: Final = 34
"""The first signal that no library uses."""
