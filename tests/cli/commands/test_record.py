"""What `playhead record` is to the program that it runs: nothing."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.long import long
from support.starting.cli import CommandLine
from support.starting.warm import playhead, run

from playhead_cli.running.agent import Agent, agent_python, parse_agent
from playhead_cli.running.receiver_for_run import receiver_for
from playhead_core.errors import UsageError
from playhead_core.settings import Settings
from playhead_receiver.auth import TokenBook
from playhead_receiver.auth.database import AccessFile
from playhead_receiver.config.configuration import Access, Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_receiver.system.writer_lock import WriterLock, running

PATIENCE_S = 60.0

LOOKS = """
import json, sys, os, urllib.request
taken = urllib.request.urlopen(os.environ["PLAYHEAD_ENDPOINT"] + "/v1/playhead").status
print(json.dumps({
    "words": sys.argv[1:], "environ": dict(os.environ), "taken": taken, "cwd": os.getcwd(),
    "stdin": sys.stdin.read(), "terminal": [os.isatty(n) for n in (0, 1, 2)],
}))
print("to stderr", file=sys.stderr)
sys.exit(7)
"""

LISTENS = r"""
import signal, sys
heard = []
def hear(number, frame):
    sys.stdout.write(f"heard {signal.Signals(number).name}\n")  # in one piece: another may come
    sys.stdout.flush()
    if number == signal.SIGTERM:
        sys.exit(5)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, hear)
print("ready", flush=True)
while True:
    signal.pause()
"""

DIES = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"


def interpreter(folder: Path, text: str) -> Path:
    path = folder / "python"
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)
    return path


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OTEL_", "PLAYHEAD_", "PYTHONHASHSEED"))
    }
    return {
        **kept,
        "PLAYHEAD_DATA_DIR": str(tmp_path / "data"),
        "PLAYHEAD_SPOOL_DIR": str(tmp_path / "spool"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "PYTHONUNBUFFERED": "1",
    }


def record(tmp_path: Path, text: str, *words: str) -> list[str]:
    script = tmp_path / "agent.py"
    script.write_text("")
    python = interpreter(tmp_path, text)
    command = [sys.executable, "-m", "playhead_cli", "record", "--python", str(python)]
    return [*command, str(script), *words]


def looked(tmp_path: Path, environ: dict[str, str], *words: str) -> tuple[Any, Any]:
    done = run(
        record(tmp_path, LOOKS, *words),
        env=environ,
        input="asked on stdin",
        timeout=PATIENCE_S,
        cwd=tmp_path,
    )
    return done, json.loads(done.stdout)


def test_streams_arguments_folder_and_exit_status_are_the_programs(
    tmp_path: Path, environ: dict[str, str]
):
    done, seen = looked(tmp_path, environ, "--json", "-v", "--", "x")
    assert done.returncode == 7
    assert seen["words"] == [
        "-m",
        "playhead_instrumentation",
        "record",
        "--",
        str(tmp_path / "agent.py"),
        "--json",
        "-v",
        "--",
        "x",
    ]
    assert seen["stdin"] == "asked on stdin"
    assert seen["cwd"] == str(tmp_path)
    assert done.stderr.splitlines() == [
        "to stderr",
        "playhead: nothing was recorded: the program called no model, no tool and no network",
    ]


def test_the_program_is_told_where_to_send_and_a_hash_seed(tmp_path: Path, environ: dict[str, str]):
    _, seen = looked(tmp_path, environ)
    told = seen["environ"]
    assert seen["taken"] == 200
    assert told["PLAYHEAD_ENDPOINT"].startswith("http://127.0.0.1:")
    assert (told["PYTHONHASHSEED"], told["PLAYHEAD_LEVEL"]) == ("0", "strict")
    assert running(environ["PLAYHEAD_DATA_DIR"]) is None


def test_what_the_user_has_set_stays(tmp_path: Path, environ: dict[str, str]):
    (tmp_path / "pyproject.toml").write_text('[tool.playhead]\nheartbeat-ms = 250\nlevel = "causal"\n')
    _, seen = looked(tmp_path, {**environ, "PYTHONHASHSEED": "17"})
    assert seen["environ"]["PYTHONHASHSEED"] == "17"
    assert seen["environ"]["PLAYHEAD_LEVEL"] == "causal"
    assert seen["environ"]["PLAYHEAD_HEARTBEAT_MS"] == "250"


def test_a_running_receiver_is_used(tmp_path: Path, environ: dict[str, str]):
    with Receiver(
        environ["PLAYHEAD_DATA_DIR"], Configuration(Addresses(http_port=0, grpc_port=None))
    ) as receiver:
        _, seen = looked(tmp_path, environ)
        assert seen["environ"]["PLAYHEAD_ENDPOINT"] == receiver.http_endpoint


def test_an_endpoint_that_the_user_names_is_used_and_none_is_embedded(
    tmp_path: Path, environ: dict[str, str]
):
    with Receiver(tmp_path / "other", Configuration(Addresses(http_port=0, grpc_port=None))) as receiver:
        done, seen = looked(tmp_path, {**environ, "PLAYHEAD_ENDPOINT": receiver.http_endpoint})
        assert seen["environ"]["PLAYHEAD_ENDPOINT"] == receiver.http_endpoint
        assert f"playhead: recorded to {receiver.http_endpoint}" in done.stderr
    assert not Path(environ["PLAYHEAD_DATA_DIR"]).exists()


def test_a_terminal_stays_a_terminal(tmp_path: Path, environ: dict[str, str]):
    text = "import os\nprint('terminals', [os.isatty(n) for n in (0, 1, 2)])\n"
    terminal = Terminal(record(tmp_path, text), environ)
    assert terminal.until("terminals [True, True, True]")
    assert terminal.status() == 0


def test_control_c_reaches_the_program_once_and_a_signal_is_passed_on(
    tmp_path: Path, environ: dict[str, str]
):
    terminal = Terminal(record(tmp_path, LISTENS), environ)
    assert terminal.until("ready")
    os.kill(terminal.pid, signal.SIGUSR1)
    assert terminal.until("heard SIGUSR1")  # so what it passes on is passed on by now
    terminal.type(b"\x03")
    assert terminal.until("heard SIGINT")
    os.kill(terminal.pid, signal.SIGUSR1)
    assert terminal.until("heard SIGUSR1", 2)  # and it has seen ^C, which another SIGINT would join
    os.kill(terminal.pid, signal.SIGINT)
    assert terminal.until("heard SIGINT", 2)
    os.kill(terminal.pid, signal.SIGTERM)
    assert terminal.status() == 5
    heard = re.findall(r"heard (\w+)", terminal.said)
    assert heard == ["SIGUSR1", "SIGINT", "SIGUSR1", "SIGINT", "SIGTERM"]


def test_a_program_that_a_signal_kills_is_reported_by_the_same_signal(
    tmp_path: Path, environ: dict[str, str]
):
    done = subprocess.run(record(tmp_path, DIES), env=environ, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize("blocked", [set[int](), {signal.SIGUSR1, signal.SIGTERM, signal.SIGCHLD}])
def test_signals_that_are_blocked_are_blocked_in_the_program(
    tmp_path: Path, environ: dict[str, str], blocked: set[int]
):
    text = "import signal\nprint(sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, ()))))\n"
    done = subprocess.run(
        record(tmp_path, text),
        env=environ,
        capture_output=True,
        text=True,
        preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, blocked),
    )
    assert done.stdout == f"{sorted(map(int, blocked))}\n"


BEGINS = "begins "

SLEEPS = "import time\nprint('sleeps', flush=True)\ntime.sleep(60)\n"


RUNS = 60.0
"""Not a time: when the program runs."""


@pytest.mark.parametrize("after_s", [0.0, 0.1, 0.3, 0.7, RUNS])
@pytest.mark.parametrize("level", ["exchanges", "strict"])
def test_control_c_ends_it_by_the_signal_whenever_it_comes(
    tmp_path: Path, environ: dict[str, str], level: str, after_s: float
):
    script = tmp_path / "agent.py"
    script.write_text(SLEEPS)
    words = [sys.executable, "-m", "playhead_cli", "record", "--level", level, str(script)]
    terminal = Terminal(words, environ)
    assert terminal.until(BEGINS)
    if after_s == RUNS:
        assert terminal.until("sleeps")
    else:
        time.sleep(after_s)  # the moment is what is tried
    terminal.type(b"\x03")
    status = terminal.status()
    # Python itself, before it runs anything; a ^C that is passed on may come on top of that.
    if "Fatal Python error: init_" in terminal.said or "Could not import runpy" in terminal.said:
        assert status in (1, -signal.SIGINT)
        return
    assert status == -signal.SIGINT, terminal.said
    assert "playhead_" not in terminal.said, terminal.said  # no traceback of ours
    assert terminal.said.count("KeyboardInterrupt") <= 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_program_that_dies_of_a_signal_is_reported_by_it(
    tmp_path: Path, environ: dict[str, str], number: signal.Signals
):
    script = tmp_path / "agent.py"
    script.write_text(f"import os, time\nos.kill(os.getpid(), {int(number)})\ntime.sleep(60)\n")
    words = [sys.executable, "-m", "playhead_cli", "record", str(script)]
    done = subprocess.run(words, env=environ, capture_output=True, text=True)
    assert done.returncode == -number
    assert "playhead_" not in done.stderr


EVALUATES_AT_EXIT = """
import atexit, os, signal
from playhead_instrumentation.bootstrap import recording

stop = recording.Recording._stop
def stop_and_import(*words):
    stop(*words)
    exec("here = 1")  # as modules with dataclasses do when they are imported

recording.Recording._stop = stop_and_import
os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.mark.parametrize(
    "how", ["record", long("record -m"), long("instrument"), "instrument -m", long("instrument -c")]
)
def test_what_is_imported_at_exit_does_not_change_how_an_interrupt_ends_a_program(
    tmp_path: Path, environ: dict[str, str], how: str
):
    (tmp_path / "agent.py").write_text(EVALUATES_AT_EXIT)
    launcher, _, option = how.partition(" ")
    words: list[str | Path] = [sys.executable, "-m", "playhead_cli", "record"]
    if launcher == "instrument":
        words = [Path(sys.executable).with_name("opentelemetry-instrument"), sys.executable]
    program = {"": ["agent.py"], "-m": ["-m", "agent"], "-c": ["-c", EVALUATES_AT_EXIT]}[option]
    done = subprocess.run(
        [*words, *program], env=environ, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGINT, done.stderr
    assert done.stderr.count("KeyboardInterrupt") == 1


def no_folder(tmp_path: Path) -> str:
    (tmp_path / "file").write_text("")
    return str(tmp_path / "file" / "data")


def damaged(tmp_path: Path) -> str:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "store.sqlite").write_bytes(b"this is no database" * 1000)
    return str(folder)


@pytest.mark.parametrize(
    ("make", "said"),
    [(no_folder, "this run is not recorded"), (damaged, "the run is only in the spool")],
)
def test_a_program_runs_also_where_nothing_can_be_kept(
    tmp_path: Path, environ: dict[str, str], make: Callable[[Path], str], said: str
):
    script = tmp_path / "agent.py"
    script.write_text("import sys\nprint('hi', sys.argv[1:])\nsys.exit(3)\n")
    told = {**environ, "PLAYHEAD_DATA_DIR": make(tmp_path)}
    words = "record", str(script), "--order", "81"
    done = playhead(*words, environ=told, cwd=tmp_path, timeout_s=PATIENCE_S)
    assert (done.returncode, done.stdout) == (3, "hi ['--order', '81']\n")
    assert "error[" in done.stderr
    assert f"playhead: {said}" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_program_runs_also_where_the_settings_are_not_understood(
    tmp_path: Path, environ: dict[str, str]
):
    script = tmp_path / "agent.py"
    script.write_text("print('hi')\n")
    told = {**environ, "PLAYHEAD_CONTENT": "metadat"}
    done = playhead("record", str(script), environ=told, cwd=tmp_path, timeout_s=PATIENCE_S)
    assert (done.returncode, done.stdout) == (0, "hi\n")
    assert done.stderr.splitlines() == [
        "error[configuration]: content from environment (PLAYHEAD_CONTENT) is 'metadat',"
        " not full or metadata",
        "hint: did you mean metadata?",
        "playhead: this run is not recorded",
    ]
    assert not Path(environ["PLAYHEAD_DATA_DIR"]).exists()


ENDINGS = {
    ("-m", "nope"): (1, "SystemExit", "No module named nope"),
    ("syntax.py",): (1, "SyntaxError", "invalid syntax (syntax.py, line 1)"),
    ("three.py",): (3, "SystemExit", "3"),
    ("config.py",): (1, "SystemExit", "no config"),
}


@pytest.mark.parametrize("level", [long("exchanges"), "strict"])
@pytest.mark.parametrize("words", ENDINGS, ids=" ".join)
def test_how_it_ended_is_part_of_the_run(
    tmp_path: Path, environ: dict[str, str], level: str, words: tuple[str, ...]
):
    (tmp_path / "syntax.py").write_text("x = = 1\n")
    (tmp_path / "three.py").write_text("import sys; sys.exit(3)\n")
    (tmp_path / "config.py").write_text("import sys; sys.exit('no config')\n")
    code, kind, message = ENDINGS[words]

    def run(*command: str) -> Any:
        return playhead(*command, environ=environ, cwd=tmp_path, timeout_s=PATIENCE_S)

    alone = subprocess.run(
        [sys.executable, *words], env=environ, capture_output=True, text=True, cwd=tmp_path
    )
    done = run("record", "--level", level, *words)
    assert (done.returncode, alone.returncode) == (code, code)
    assert done.stderr.splitlines()[:-1] == alone.stderr.splitlines()
    ended = json.loads(run("show", "last", "--json").stdout)["exit"]
    assert (ended["code"], ended["error"]["type"]) == (code, kind)
    assert ended["error"]["message"].endswith(message)
    assert ended["stderr"] == (alone.stderr.splitlines() if level == "strict" else [])
    assert (message if code == 1 else "exit status 3") in run("show", "last").stdout
    (listed,) = json.loads(run("ls", "--json").stdout)["runs"]
    assert (listed["status"], listed["error_types"]) == ("failure", [kind])
    assert kind in run("ls").stdout


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, words: list[str], environ: dict[str, str]) -> None:
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.write(1, BEGINS.encode())
            os.execve(words[0], words, environ)
        self._raw = b""

    @property
    def said(self) -> str:
        """What was printed so far; a letter may have come in part."""
        return self._raw.decode(errors="replace").replace("\r\n", "\n")

    def type(self, data: bytes) -> None:
        os.write(self._master, data)

    def until(self, text: str, times: int = 1) -> bool:
        deadline = time.monotonic() + PATIENCE_S
        while self.said.count(text) < times and time.monotonic() < deadline and self._read():
            pass
        return self.said.count(text) >= times

    def status(self) -> int:
        while self._read():
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def _read(self) -> bool:
        readable, _, _ = select.select([self._master], [], [], PATIENCE_S)
        try:
            data = os.read(self._master, 4096) if readable else b""
        except OSError:  # Linux: the other end is closed
            return False
        self._raw += data
        return bool(data)


@pytest.mark.parametrize(
    ("words", "agent"),
    [
        (("agent.py", "-x"), Agent(("agent.py", "-x"))),
        (("-m", "json.tool", "f"), Agent(("-m", "json.tool", "f"))),
        (("--", "-m", "json.tool"), Agent(("-m", "json.tool"))),
        (("--", "agent.py"), Agent(("agent.py",))),
        (("--", "env", "A=1"), Agent(("env", "A=1"), is_command=True)),
    ],
)
def test_the_program_is_a_script_a_module_or_a_command(
    words: tuple[str, ...], agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "agent.py").write_text("")
    monkeypatch.chdir(tmp_path)
    assert parse_agent(words) == agent


@pytest.mark.parametrize(
    ("words", "said", "hint"),
    [
        ((), "no program to record", "playhead record SCRIPT [ARGS]"),
        (("-m",), "no program to record", "playhead record SCRIPT [ARGS]"),
        (("nothing.py",), "no script nothing.py", "playhead record SCRIPT [ARGS]"),
        (("env",), "no script env here", "playhead record -- env"),
    ],
)
def test_what_is_no_program_is_said(playhead: CommandLine, words: tuple[str, ...], said: str, hint: str):
    with pytest.raises(UsageError) as raised:
        parse_agent(words)
    assert (raised.value.what, raised.value.hint) == (said, hint)


def test_a_command_runs_under_the_instrumentation_of_its_environment():
    assert Agent(("env", "A=1"), is_command=True).command_line("/v/bin/python") == [
        "/v/bin/python",
        "-m",
        "playhead_instrumentation",
        "command",
        "--",
        "env",
        "A=1",
    ]


def test_the_interpreter_is_that_of_the_active_environment(tmp_path: Path):
    (tmp_path / "bin").mkdir()
    python = interpreter(tmp_path / "bin", "")
    assert agent_python("", {"VIRTUAL_ENV": str(tmp_path)}) == str(python)
    assert agent_python("", {"VIRTUAL_ENV": str(tmp_path / "gone")}) == sys.executable
    assert agent_python(str(python), {}) == str(python)


def test_when_the_receiver_that_was_found_goes_away_another_is_embedded(tmp_path: Path):
    other = Receiver(tmp_path, Configuration(Addresses(http_port=0, grpc_port=None)))
    other.start()
    with receiver_for(Settings(data_dir=str(tmp_path))) as house:
        assert house.listening().http == other.http_endpoint
        assert not house.embedded
        other.stop()
        endpoint = house.listening().http
        assert house.embedded
        assert running(tmp_path).http == endpoint  # type: ignore[union-attr]
    assert running(tmp_path) is None


def test_a_receiver_that_has_the_lock_and_does_not_listen_yet_is_waited_for(tmp_path: Path):
    import threading

    lock = WriterLock.take(tmp_path)
    timer = threading.Timer(0.2, lambda: lock.announce("http://127.0.0.1:9", ""))
    timer.start()
    with receiver_for(Settings(data_dir=str(tmp_path))) as house:
        assert house.listening().http == "http://127.0.0.1:9"
    timer.join()
    lock.release()


def test_the_owner_of_the_data_folder_records_to_a_receiver_that_asks_for_tokens(
    tmp_path: Path, environ: dict[str, str]
):
    import httpx

    file = AccessFile(tmp_path / "data")
    TokenBook(file).create("ci", ["ingest"])
    file.close()
    with Receiver(
        tmp_path / "data",
        Configuration(Addresses(http_port=0, grpc_port=None, query_port=0), Access(guarded=True)),
    ) as receiver:
        assert httpx.post(f"{receiver.http_endpoint}/v1/traces", timeout=60).status_code == 401
        script = tmp_path / "agent.py"
        script.write_text(
            "from opentelemetry import trace\ntrace.get_tracer('t').start_span('s').end()\n"
        )
        words = [sys.executable, "-m", "playhead_cli", "record", str(script)]
        done = subprocess.run(words, env=environ, capture_output=True, text=True, cwd=tmp_path)
        assert (done.returncode, "not delivered" in done.stderr) == (0, False), done.stderr
        found = running(tmp_path / "data")
        assert found is not None
        headers = {"authorization": f"Bearer {found.key}"}
        url = f"{receiver.query_endpoint}/v1/runs?q=mode:all"
        listed = httpx.get(url, headers=headers, timeout=60).json()
        assert [one["name"] for one in listed["runs"]] == ["agent-1"]
        assert found.key not in done.stderr
    assert (tmp_path / "data" / "receiver.lock").read_bytes() == b""
