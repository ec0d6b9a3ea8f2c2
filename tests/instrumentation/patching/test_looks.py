"""What is patched looks, to whoever asks, like what stood there before."""

import json
import os

import pytest
from support.starting.programs import Program

WALK = """
import copy, functools, importlib, inspect, json, pickle, pydoc, re, sys
from playhead_core.boundaries import BOUNDARIES

def found(name):
    words = name.split(".")
    for count in range(len(words) - 1, 0, -1):
        try:
            owner = importlib.import_module(".".join(words[:count]))
        except ImportError:
            continue
        try:
            return functools.reduce(getattr, words[count:], owner)
        except AttributeError:
            return None

def said(ask):
    try:
        return re.sub("0x[0-9a-f]+", "0x", str(ask()))  # without addresses
    except Exception as problem:
        return type(problem).__name__

def looks(it):
    names = "__module__ __name__ __qualname__ __doc__ __text_signature__".split()
    kinds = "isbuiltin isfunction ismethod isroutine isclass iscoroutinefunction ismodule".split()
    return {
        "type": f"{type(it).__module__}.{type(it).__qualname__}",
        "signature": said(lambda: inspect.signature(it)),
        "pickle": said(lambda: pickle.loads(pickle.dumps(it)) is it),
        "pickled": inspect.isbuiltin(it) and said(lambda: pickle.dumps(it)),
        "copy": said(lambda: (copy.copy(it) is it, copy.deepcopy(it) is it)),
        "partial": said(lambda: functools.partial(it).func is it),
        "help": inspect.ismodule(it) or said(lambda: pydoc.render_doc(it)),
        "callable": callable(it),
        **{name: said(lambda: getattr(it, name)) for name in names},
        **{kind: getattr(inspect, kind)(it) for kind in kinds},
    }

ours = sys.stdlib_module_names
targets = [one for row in BOUNDARIES for one in row.targets if one.split(".")[0] in ours]
print(json.dumps({one: looks(it) for one in targets if (it := found(one)) is not None}))
"""

OTHERWISE = {
    # Classes and modules that stand in for others, at levels that order threads or the sets of tasks.
    *("asyncio.Future", "asyncio.Task", "asyncio.futures.Future", "asyncio.tasks.Task"),
    "asyncio.tasks._GatheringFuture.__hash__",
    *("concurrent.futures._base.Future.__hash__", "threading.Thread.__hash__"),
    *("threading.Lock", "threading.RLock", "queue.SimpleQueue", "subprocess._PopenSelector"),
    *(
        "threading._time",
        "queue.time",
        "concurrent.futures._base.time",
        "concurrent.futures.as_completed",
    ),
    # What C gives of a class method is bound to the class, and can be bound to nothing of ours.
    *("datetime.datetime.now", "datetime.datetime.utcnow", "datetime.date.today"),
    # Methods of objects.
    *("sys.stdout.write", "sys.stdout.flush", "sys.stderr.write", "sys.stderr.flush"),
    *("sys.stdin.isatty", "sys.stdout.isatty", "sys.stderr.isatty"),
    *("random.random", "random.getrandbits", "random._inst.random", "random._inst.getrandbits"),
    # Its text has addresses.
    "pty.spawn",
    # A static method, which is pickled by a name that is ours.
    "multiprocessing.pool.ThreadPool._repopulate_pool",
    # Their own boundaries replace them.
    *("os.urandom", "os.getrandom", "random._urandom", "builtins.input", "getpass.getpass"),
    *("sys.exit", "os._exit", "signal.raise_signal"),
    *("os.cpu_count", "os.getlogin", "os.getloadavg", "os.uname", "os.getpid", "os.getppid"),
    *("os.get_terminal_size", "os.isatty", "socket.gethostname"),
    "wsgiref.simple_server.WSGIServer.serve_forever",
}
"""What is seen to be another thing."""


@pytest.mark.parametrize("level", ["causal", "strict"])
def test_what_stands_in_the_place_of_a_function_looks_like_it(level, tmp_path):
    program = Program.of(tmp_path, WALK, PLAYHEAD_LEVEL=level)
    try:
        plain, recorded = program.run("python", "agent.py"), program.recorded()
    finally:
        program.close()
    assert (plain.returncode, recorded.returncode) == (0, 0), recorded.stderr
    before, now = json.loads(plain.stdout), json.loads(recorded.stdout)
    differ = {
        name: {key: (was, now[name][key]) for key, was in looks.items() if now[name][key] != was}
        for name, looks in before.items()
        if name not in OTHERWISE and now[name] != looks
    }
    assert differ == {}
    assert len(before) > 150


ENTRIES = """
import copy, os, pickle
entries = sorted(os.scandir("ws"), key=lambda entry: entry.name)
print([isinstance(entry, os.DirEntry) for entry in entries], type(entries[0]).__name__, type(entries[0]))
print(entries[0], entries[0].is_file(), os.fspath(entries[0]), entries[0].__class__ is os.DirEntry)
for ask in (pickle.dumps, copy.copy):
    try:
        ask(entries[0])
    except TypeError as problem:
        print(problem)
"""


@pytest.mark.parametrize("level", ["causal", "strict"])
def test_an_entry_of_a_folder_is_one_of_the_systems(level, tmp_path):
    program = Program.of(tmp_path, ENTRIES, PLAYHEAD_LEVEL=level)
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "a.txt").write_text("a")
    try:
        plain, recorded = program.run("python", "agent.py"), program.recorded()
    finally:
        program.close()
    assert (recorded.stdout, recorded.stderr) == (plain.stdout, "")


def test_what_the_program_gives_is_refused_as_it_is_without_us(tmp_path):
    source = """
import os
for ask in (
    lambda: open(), lambda: open(1.5), lambda: open("a", "zz"), lambda: open("a\\0b"),
    lambda: os.stat(), lambda: os.stat(None), lambda: os.stat(1.5), lambda: os.fstat("a"),
    lambda: os.open("a"), lambda: os.close("a"), lambda: os.listdir(1.5), lambda: os.scandir(object()),
    lambda: os.rename("a"), lambda: os.mkdir("a\\0b"), lambda: os.chdir(None), lambda: os.access("a"),
    lambda: os.readlink(3), lambda: os.link("a", None), lambda: os.getcwd(1), lambda: os.symlink("a", 4),
    lambda: os.unlink(b"a\\xff"), lambda: os.truncate("a"), lambda: os.listdir("odd"),
    lambda: [one.name for one in os.scandir("odd")], lambda: open("odd/\\udcff").read(),
    lambda: os.stat(path="odd").st_mode, lambda: os.listdir(path="odd"), lambda: len(os.listdir()) > 0,
):
    try:
        print(repr(ask()))
    except Exception as problem:
        print(type(problem).__name__, problem)
"""
    program = Program.of(
        tmp_path, source, PLAYHEAD_LEVEL="strict", PYTHONIOENCODING="utf-8:backslashreplace"
    )
    (tmp_path / "odd").mkdir()
    (tmp_path / os.fsdecode(b"odd/\xff")).write_text("odd")
    try:
        plain, recorded = program.run("python", "agent.py"), program.recorded()
    finally:
        program.close()
    assert recorded.stdout.splitlines() == plain.stdout.splitlines()
    assert recorded.stderr == ""
