"""``python -I -S isolated.py --parent PID --said FILE [--network none] [--scratch DIR] -- COMMAND``.

Executes the command in this process; the command dies with process PID. If Linux allows it, the command
gets namespaces of its own and no capability that reaches outside them:

* ``--network none``: no network. Sockets and pipes in folders are cut off too, because each folder is
  seen through an overlay.
* ``--scratch DIR``: no file outside DIR can be changed. Everything that is mounted is read-only. The
  program's folder and the folders for temporary files are writable, but what is written is discarded. No
  other process is visible, nor its shared memory, queues, semaphores, terminals and devices.
* ``--wait SECONDS``: how long processes that the command started may outlive it.

What the kernel enforces is written to FILE and to the variable ``PLAYHEAD_HELD_BY_KERNEL``: ``network``,
``files``, ``processes``.

This is a separate script because only a process with one thread can enter a user namespace.
"""

from __future__ import annotations

import ctypes
import glob
import os
import re
import select
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from typing import Final, NoReturn

CLONE_NEWNS: Final = 0x00020000
CLONE_NEWUTS: Final = 0x04000000
CLONE_NEWIPC: Final = 0x08000000
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWPID: Final = 0x20000000
CLONE_NEWNET: Final = 0x40000000
MS_NOSUID: Final = 2
MS_BIND: Final = 4096
MS_REC: Final = 16384
MS_PRIVATE: Final = 1 << 18
SYS_MOUNT_SETATTR: Final = 442
AT_FDCWD: Final = -100
AT_RECURSIVE: Final = 0x8000
MOUNT_ATTR_RDONLY: Final = 1
MOUNT_ATTR_NOSUID: Final = 2
MOUNT_ATTR_NODEV: Final = 4
PR_SET_PDEATHSIG: Final = 1
PR_SET_DUMPABLE: Final = 4
PR_CAPBSET_DROP: Final = 24
PR_SET_NO_NEW_PRIVS: Final = 38
PR_CAP_AMBIENT: Final = 47
PR_CAP_AMBIENT_CLEAR_ALL: Final = 4
CAPABILITY_VERSION: Final = 0x20080522
KEYCTL_JOIN_SESSION_KEYRING: Final = 1
SYS_KEYCTL: Final = {"x86_64": 250, "aarch64": 219}

HELD_BY_KERNEL: Final = "PLAYHEAD_HELD_BY_KERNEL"

KEPT_CAPABILITIES: Final = (0, 1, 3, 4, 5, 6, 7, 10)
"""Capabilities that root keeps if it had them: CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID,
SETUID and NET_BIND_SERVICE.

Inside the namespaces they do not reach anything outside.
"""

CAPABILITIES: Final = 64
"""Upper bound of capability numbers."""

DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty", "nvidia*", "kfd", "dri")
"""Entries of ``/dev`` that stay: graphics processors, and devices that keep nothing written to them."""

LINKS: Final = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}

SYSTEM: Final = ("/proc", "/sys", "/dev")
"""Folders in which no other program places sockets; they are read-only or mounted anew."""

OVERLAYS: Final = 256
"""Largest number of folders that are covered with an overlay."""

# The functions as they are before boundaries are patched.
_kill: Final = os.kill
_waitpid: Final = os.waitpid

libc = ctypes.CDLL(None, use_errno=True)
_fork: Final = ctypes.PyDLL(None).fork
"""Skips Python's fork handlers: for the program, there is only this one process."""


class Attributes(ctypes.Structure):
    """``struct mount_attr``."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns_fd")]


def main(words: list[str]) -> None:
    """Entry point; see the module docstring."""
    split = words.index("--")
    options, command = words[:split], words[split + 1 :]
    enter(options)
    try:
        os.execvp(command[0], command)
    except OSError as problem:
        sys.stderr.write(f"{command[0]}: {problem.strerror}\n")
        raise SystemExit(127) from None


def enter(options: list[str]) -> None:
    """Apply ``options`` to this process, which must have one thread.

    Returns in the process that is to become the command. That may be a new process; the calling process
    then stays behind as its parent and ends with the same status.
    """
    values = dict(zip(options[::2], options[1::2], strict=True))
    parent, enforced = int(values["--parent"]), list[str]()
    network, scratch = values.get("--network") == "none", values.get("--scratch", "")
    flags = CLONE_NEWNET if network else 0
    flags |= CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS if scratch else 0
    before, users = _capabilities(), _users()
    if flags and unshared(flags):
        if _users() != users:  # otherwise this would change the limit of the whole machine
            _tried(lambda: _write("/proc/sys/user/max_user_namespaces", "0"))
        if scratch:
            _leave_behind(parent, float(values.get("--wait", "0")))
            parent = os.getppid()
            os.setsid()
            enforced = _alone(scratch, network=network)
        _tried(lambda: drop(before))
    with open(values["--said"], "w", encoding="utf-8") as said:
        said.write("\n".join(enforced))
    if enforced:
        os.environ[HELD_BY_KERNEL] = " ".join(enforced)
    _die_with(parent)


def _alone(scratch: str, *, network: bool) -> list[str]:
    """Inside the namespaces: leave nothing writable but ``scratch``. Returns what is enforced."""
    enforced = ["processes"]
    number = SYS_KEYCTL.get(os.uname().machine)
    if number is not None:
        libc.syscall(number, KEYCTL_JOIN_SESSION_KEYRING, None)
    view = _View(scratch)
    if _tried(view.only_in_scratch):
        enforced.append("files")
        if network and view.whole:
            enforced.append("network")
    return enforced


def _die_with(parent: int) -> None:
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        raise SystemExit("whoever started this replay is gone")


def unshared(flags: int) -> bool:
    """Enter new namespaces, including a user namespace if possible; all ids keep their values."""
    user, group = os.geteuid(), os.getegid()
    maps = [(name, _same(name)) for name in ("uid_map", "gid_map")]
    if user == 0 and _with_help(maps, lambda: libc.unshare(flags | CLONE_NEWUSER) == 0):
        return True
    if user == 0 and libc.unshare(flags) == 0:
        return True
    own = [("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")]
    return libc.unshare(flags | CLONE_NEWUSER) == 0 and _tried(lambda: _mapped("self", own))


def _same(name: str) -> str:
    """An id map in which each existing id maps to itself."""
    try:
        with open(f"/proc/self/{name}", encoding="ascii") as lines:
            return "".join(f"{first} {first} {count}\n" for first, _, count in map(str.split, lines))
    except OSError:
        return ""


def _with_help(maps: list[tuple[str, str]], unshare: Callable[[], bool]) -> bool:
    """Enter a user namespace in which every id is mapped.

    A helper process that stays outside has to write the map.
    """
    target = os.getpid()
    (waits, goes), (hears, tells) = os.pipe(), os.pipe()
    helper = _fork()
    if helper == 0:
        try:
            os.close(goes)
            told = os.read(waits, 1) and _tried(lambda: _mapped(str(target), maps))
            os.write(tells, b"1" if told else b"0")
        finally:
            os._exit(0)
    for theirs in (waits, tells):
        os.close(theirs)
    try:
        if helper < 0 or not unshare():
            return False
        os.write(goes, b"1")
        if os.read(hears, 1) != b"1":
            raise SystemExit("the user namespace of this replay has no users")
        return True
    finally:
        os.close(goes)
        os.close(hears)
        if helper > 0:
            _waitpid(helper, 0)


def _mapped(process: str, maps: list[tuple[str, str]]) -> None:
    for name, text in maps:
        _write(f"/proc/{process}/{name}", text)


def _users() -> str:
    """Identifier of the current user namespace."""
    return os.readlink("/proc/self/ns/user")


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _leave_behind(parent: int, patience_s: float) -> None:
    """Return in a process of the new namespace; the caller stays outside and ends with the same status.

    Between the two runs the init process of the PID namespace; when it dies, all others in it die.
    """
    hears, tells = os.pipe()
    first = _fork()
    if first < 0:
        raise SystemExit("no process can be made in the namespace of this replay")
    if first == 0:
        os.close(hears)
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        command = _fork()
        if command == 0:
            os.close(tells)
            return
        _reap(command, tells)
    os.close(tells)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _die_with(parent)
    said = os.read(hears, 16)
    # becomes readable when all processes of the namespace have ended
    select.select([hears], [], [], patience_s)
    _kill(first, signal.SIGKILL)
    _waitpid(first, 0)
    _end_as(int(said) if said else signal.SIGKILL)


def _reap(command: int, tells: int) -> NoReturn:
    """Act as the init process of a PID namespace until no other process is left in it."""
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        while True:
            pid, status = _waitpid(-1, 0)
            if pid == command:
                os.write(tells, b"%d" % status)
    except ChildProcessError:
        pass
    finally:
        os._exit(0)


def _end_as(status: int) -> NoReturn:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        _kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))


class _View:
    """The file system as the command sees it."""

    def __init__(self, scratch: str) -> None:
        self._scratch = scratch
        self._inside = os.path.join(scratch, "over")
        self._made = 0
        self.whole = True
        """Whether no socket and no pipe of another program remains reachable."""

    def only_in_scratch(self) -> None:
        """Make everything read-only except the scratch folder. `OSError`."""
        cwd, scratch, inside = os.getcwd(), self._scratch, self._inside
        points = _mount_points()
        own = _apart([cwd, "/tmp", "/var/tmp"], points)
        lower = {folder: os.open(folder, os.O_PATH) for folder in own}
        os.mkdir(inside)
        mount(None, "/", None, MS_REC | MS_PRIVATE)
        mount(scratch, scratch, None, MS_BIND)
        mount("tmpfs", inside, "tmpfs")
        _tried(lambda: mount("proc", "/proc", "proc", MS_NOSUID))
        devices = _lay_devices()
        _set("/", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0, AT_RECURSIVE)
        for device in devices:
            _tried(lambda device=device: _set(device, 0, MOUNT_ATTR_NODEV))
        for mine in (scratch, inside, "/dev/shm"):
            _set(mine, 0, MOUNT_ATTR_RDONLY)
        kept, beneath = (os.open(mine, os.O_PATH) for mine in (scratch, inside))
        self._inside = f"/proc/self/fd/{beneath}"  # its parent folder will be covered by an overlay
        os.mkdir(f"{self._inside}/empty")
        for folder in self._folders(points, own):
            self._cover(folder)
        for folder in own:
            self._over(folder, lower[folder])
        mount(f"/proc/self/fd/{kept}", scratch, None, MS_BIND)
        for number in (kept, beneath, *lower.values()):
            os.close(number)
        os.chdir(cwd)

    def _folders(self, points: list[str], own: list[str]) -> Iterator[str]:
        """All mounted folders without a mount below them. Single sockets are cut off here."""
        above = {"/"}
        for point in points:
            while (point := os.path.dirname(point)) not in above:
                above.add(point)
        left = ["/"]
        while left:
            folder = left.pop()
            if folder in SYSTEM or folder in own:
                continue
            if folder not in above:
                yield folder
                continue
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            left.append(entry.path)
                        elif _speaks(entry.stat(follow_symlinks=False).st_mode):
                            mount("/dev/null", entry.path, None, MS_BIND)
            except OSError:
                self.whole = False

    def _cover(self, folder: str) -> None:
        """Cover ``folder`` with an overlay, so that its sockets and pipes cannot be reached."""
        self._made += 1
        number = -1
        try:
            if self._made > OVERLAYS:
                raise OSError(f"more than {OVERLAYS} folders")
            number = os.open(folder, os.O_PATH)
            data = f"lowerdir=/proc/self/fd/{number}:{self._inside}/empty"
            mount("overlay", folder, "overlay", 0, data)
            _set(folder, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0)
        except OSError:
            self.whole = False
        finally:
            if number >= 0:
                os.close(number)

    def _over(self, folder: str, lower: int) -> None:
        """Cover ``folder`` with a writable overlay; changes are kept in memory only."""
        self._made += 1
        upper, work = (f"{self._inside}/{self._made}/{name}" for name in ("upper", "work"))
        try:
            for made in (os.path.dirname(upper), upper, work):
                os.mkdir(made)
            there = os.stat(f"/proc/self/fd/{lower}")
            _tried(lambda: os.chown(upper, there.st_uid, there.st_gid))
            os.chmod(upper, there.st_mode & 0o7777)
            data = f"lowerdir=/proc/self/fd/{lower},upperdir={upper},workdir={work}"
            if not _tried(lambda: mount("overlay", folder, "overlay", 0, f"{data},userxattr")):
                mount("overlay", folder, "overlay", 0, data)
            _set(folder, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0)
        except OSError:
            self.whole = False


def _lay_devices() -> list[str]:
    """Replace ``/dev`` with a private one. Returns the mounts that contain devices."""
    found = [path for name in DEVICES for path in glob.glob(f"/dev/{name}")]
    devices = {path: os.open(path, os.O_PATH) for path in found}
    folders = {path for path in found if os.path.isdir(path)}
    mount("tmpfs", "/dev", "tmpfs", MS_NOSUID, "mode=0755")
    for path, number in devices.items():
        if path in folders:
            os.mkdir(path)
        else:
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
        mount(f"/proc/self/fd/{number}", path, None, MS_BIND | MS_REC)
        os.close(number)
    for name, target in LINKS.items():
        os.symlink(target, f"/dev/{name}")
    for name in ("pts", "shm"):
        os.mkdir(f"/dev/{name}")
    mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID, "mode=1777")
    if _tried(lambda: mount("devpts", "/dev/pts", "devpts", MS_NOSUID, "newinstance,ptmxmode=0666")):
        found.append("/dev/pts")
    return found


def _speaks(mode: int) -> bool:
    return stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode)


def _apart(folders: list[str], points: list[str]) -> list[str]:
    """Real paths of ``folders``, none below another.

    Leaves out folders with a mount below them, because that mount would vanish.
    """
    real = sorted({os.path.realpath(folder) for folder in folders if os.path.isdir(folder)})
    apart: list[str] = []
    for folder in real:
        below = folder.rstrip(os.sep) + os.sep
        if not any(folder.startswith(other + os.sep) for other in apart) and not any(
            point.startswith(below) for point in points
        ):
            apart.append(folder)
    return apart


def _mount_points() -> list[str]:
    with open("/proc/self/mountinfo", "rb") as lines:
        points = [line.split()[4] for line in lines]
    return [os.fsdecode(re.sub(rb"\\([0-7]{3})", _octal, point)) for point in points]


def _octal(found: re.Match[bytes]) -> bytes:
    return bytes([int(found[1], 8)])


def mount(source: str | None, target: str, kind: str | None, flags: int = 0, data: str = "") -> None:
    """See mount(2). `OSError`."""
    words = [None if one is None else os.fsencode(one) for one in (source, target, kind)]
    checked(libc.mount(*words, ctypes.c_ulong(flags), os.fsencode(data)), target)


def _set(target: str, set: int, clear: int, flags: int = 0) -> None:
    attributes = Attributes(set, clear, 0, 0)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    done = libc.syscall(
        SYS_MOUNT_SETATTR, AT_FDCWD, os.fsencode(target), flags, ctypes.byref(attributes), size
    )
    checked(done, target)


def _capabilities() -> int:
    """The permitted capabilities of this process, as a bit mask."""
    header, data = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    libc.capget(header, data)
    return data[1] | data[4] << 32


def drop(before: int) -> None:
    """Of the capabilities ``before``, keep only those that change nothing outside."""
    kept = sum(1 << number for number in KEPT_CAPABILITIES) & before
    for number in range(CAPABILITIES):
        if not kept >> number & 1:
            libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0)
    libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    low, high = kept & 0xFFFFFFFF, kept >> 32
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    data = (ctypes.c_uint32 * 6)(low, low, 0, high, high, 0)
    checked(libc.capset(header, data), "capabilities")
    checked(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "privileges")


def checked(done: int, target: str) -> None:
    """Raise `OSError` if a system call has failed."""
    if done != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), target)


def _tried(do: Callable[[], None]) -> bool:
    try:
        do()
    except (OSError, AttributeError):
        return False
    return True


if __name__ == "__main__":
    main(sys.argv[1:])
