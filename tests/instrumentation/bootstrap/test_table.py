"""The table of boundaries says what is patched: nothing else is, and at the end nothing is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import interpreter
from support.long import long
from support.starting.programs import Program

from playhead_core.boundaries import BOUNDARIES, BY_NAME, LEVELS, has
from playhead_semconv import attributes as a
from playhead_semconv import events as e

LOOKS = """
import interpreter, json, subprocess, sys, threading, typing_extensions  # that one changes `typing`
from playhead_core.boundaries import BOUNDARIES

modules = {module for row in BOUNDARIES for module, _ in row.on_import}
interpreter.import_all(tuple(one for one in modules if one.partition(".")[0] in sys.stdlib_module_names))
targets = [target for row in BOUNDARIES for target in row.targets]
hooks = []
sys.addaudithook(lambda event, _: hooks.append(event) if event == "sys.addaudithook" else None)
hooks.clear()
before = interpreter.snapshot()

from playhead_instrumentation.bootstrap.instrumentor import PlayheadInstrumentor

ours = PlayheadInstrumentor()
ours.instrument()
child = subprocess.Popen(["true"], stdout=subprocess.PIPE)  # os.read is patched where there is a pipe
child.communicate()
started = interpreter.snapshot(before)
there = [target for target in targets if interpreter.there(before, target) or target in started]
"""

SAYS = """
ours.uninstrument()
ended = interpreter.snapshot(before)
print(json.dumps({
    "there": there,
    "replaced": interpreter.replaced(before, started),
    "hooks": len(hooks),
    "left": interpreter.replaced(before, ended),
}))
"""

AT_EXCHANGES = """
_sitebuiltins.Quitter.__call__
asyncio.base_events.BaseEventLoop.create_task
asyncio.base_subprocess.BaseSubprocessTransport._pipe_data_received
asyncio.base_subprocess.BaseSubprocessTransport._process_exited
builtins.input
concurrent.futures.thread.ThreadPoolExecutor.submit
getpass.getpass
http.client.HTTPConnection.__init__
http.client.HTTPConnection.close
http.client.HTTPConnection.connect
http.client.HTTPConnection.endheaders
http.client.HTTPConnection.getresponse
http.client.HTTPConnection.send
http.client.HTTPSConnection.connect
logging.Filterer.filter
multiprocessing.popen_forkserver.Popen._launch
multiprocessing.popen_forkserver.Popen.poll
multiprocessing.popen_forkserver.forkserver
multiprocessing.popen_spawn_posix.Popen._launch
multiprocessing.spawn.get_preparation_data
multiprocessing.util.spawnv_passfds
os._exit
os._spawnvef
os.execv
os.execve
os.fork
os.kill
os.killpg
os.posix_spawn
os.posix_spawnp
os.system
signal.alarm
signal.getitimer
signal.getsignal
signal.pause
signal.pthread_kill
signal.raise_signal
signal.setitimer
signal.signal
signal.sigtimedwait
signal.sigwait
signal.sigwaitinfo
subprocess.Popen._communicate
subprocess.Popen._execute_child
subprocess.Popen._handle_exitstatus
subprocess.io
sys.exit
threading.Thread._bootstrap_inner
threading.Thread.start
wsgiref.simple_server.WSGIServer.serve_forever
wsgiref.simple_server.WSGIServer.set_app
""".split()
"""Tasks, threads and jobs; edges of http.client; processes; exits and signals; servers that serve."""

HOOK = "sys.addaudithook"
"""What the table calls an audit hook, which cannot be taken out again and passes through."""


def looked(made: Program) -> Any:
    """What a program that looks says."""
    (made.folder / "interpreter.py").write_text(Path(interpreter.__file__).read_text("utf-8"), "utf-8")
    done = made.run("python", "agent.py")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module", params=LEVELS)
def of_level(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Any]]:
    """A level, and what a program that looks says there."""
    made = Program.of(tmp_path_factory.mktemp("table"), LOOKS + SAYS, PLAYHEAD_LEVEL=request.param)
    try:
        yield request.param, looked(made)
    finally:
        made.close()


def test_what_is_replaced_is_what_the_table_says(of_level):
    level, told = of_level
    wanted = {target for row in BOUNDARIES if has(level, row) for target in row.targets}
    assert told["replaced"] == sorted(wanted & set(told["there"]) - {HOOK})
    assert told["hooks"] == (HOOK in wanted)
    if level == "exchanges":
        print(f"{len(told['replaced'])} attributes at exchanges:", *told["replaced"], sep="\n")
        assert told["replaced"] == AT_EXCHANGES


def test_nothing_is_left_after_uninstrumenting(of_level):
    _, told = of_level
    # Not yet taken off: these two are put in place without `Patches`.
    still = {target for name in ("files", "processes.messages") for target in BY_NAME[name].targets}
    assert [name for name in told["left"] if name not in still] == []


@pytest.mark.parametrize(
    ("environ", "absent", "present"),
    [
        ({"OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "http.client"}, "http.client", "processes"),
        long({"PLAYHEAD_BOUNDARIES": "-processes.workers"}, "processes.workers", "http.client"),
        ({"PLAYHEAD_BOUNDARIES": "+clock,-http.client"}, "http.client", "clock"),
        long(
            {"OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "clock , grpc", "PLAYHEAD_LEVEL": "causal"},
            "clock",
            "entropy",
        ),
        long(
            {
                "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "clock,http.client",
                "PLAYHEAD_BOUNDARIES": "+clock",
            },
            "http.client",
            "clock",
        ),
    ],
)
def test_names_of_the_table_switch_them_off_and_on(program, environ, absent, present):
    told = looked(program(LOOKS + SAYS, **environ))
    replaced, there = set(told["replaced"]), set(told["there"])
    others = {target for row in BOUNDARIES if row.name != absent for target in row.targets}
    assert replaced & set(BY_NAME[absent].targets) - others == set()
    assert replaced >= set(BY_NAME[present].targets) & there


WRAPPED = """
import functools, os, random, threading, time, logging
from playhead_instrumentation.patching.builtins import behind

def around(owner, name):
    original = getattr(owner, name)

    @functools.wraps(original)
    def others(*args, **kwargs):
        return original(*args, **kwargs)

    setattr(owner, name, others)
    return others

others = {
    (owner, name): around(owner, name)
    for owner, name in (
        (time, "time"), (time, "sleep"), (os, "urandom"), (threading.Thread, "start"), (os, "system"),
        (threading.Condition, "wait"), (logging.LogRecord, "__init__"), (os, "getpid"), (sys, "exit"),
    )
    if hasattr(behind(getattr(owner, name)), "__wrapped__")
}
from playhead_instrumentation.session import session
ours.uninstrument()
assert session.current() is None

thread = threading.Thread(target=lambda: (time.time(), os.urandom(4), time.sleep(0.001)))
thread.start()
thread.join(5)
done = threading.Event()
assert not done.wait(0.001)
assert os.system("exit 3") >> 8 == 3
logging.getLogger("x").warning("said")
for (owner, name), put in others.items():
    assert getattr(owner, name) is put, name
print(json.dumps(len(others)))
sys.exit(0)
"""


@pytest.mark.parametrize(("level", "wrapped"), [("exchanges", 3), ("causal", 9), ("strict", 9)])
def test_what_somebody_else_has_wrapped_passes_through(program, level, wrapped):
    made = program(LOOKS + WRAPPED, PLAYHEAD_LEVEL=level)
    assert looked(made) == wrapped
    facts = made.facts()
    assert facts[-1].name == e.PLAYHEAD_PROCESS_EXIT
    assert a.PLAYHEAD_PROCESS_EXIT_CODE not in facts[-1].attributes
    assert [fact.name for fact in facts].count(e.PLAYHEAD_PROCESS_EXIT) == 1


def test_instrumenting_again_says_that_there_is_no_second_recording(program):
    made = program(
        "from playhead_instrumentation.bootstrap.instrumentor import PlayheadInstrumentor as One\n"
        "One().instrument(), One().uninstrument(), One().instrument(), print('on')\n"
    )
    done = made.run("python", "agent.py")
    assert (done.returncode, done.stdout) == (0, "on\n")
    assert "playhead: a process whose recording was ended is not recorded again\n" in done.stderr
