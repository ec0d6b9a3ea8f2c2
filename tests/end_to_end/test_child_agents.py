"""Children that are recorded Python agents: each is executed again with its own tape."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.observed.asking import ASKING
from support.starting.home import Home

from playhead_cli.demo.provider import Provider

CHILD = """
import os, sys, time
from pathlib import Path
from asking import asked

given = sys.stdin.read()
print(asked(f"{sys.argv[1]} {os.environ['ROLE']} {given}"), time.time())
Path(f"{sys.argv[1]}.txt").write_text(asked("again"))
print("said", file=sys.stderr)
sys.exit(3 if sys.argv[1] == "one" else 0)
"""

AGENT = """
import asyncio, os, subprocess, sys
from pathlib import Path
from asking import asked

def run(name, role):
    words = [sys.executable, "child.py", name]
    env = {**os.environ, "ROLE": role}
    return subprocess.run(words, env=env, input=f"to {name}", capture_output=True, text=True)

async def several():
    async def one(name):
        words = [sys.executable, "child.py", name]
        child = await asyncio.create_subprocess_exec(
            *words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env={**os.environ, "ROLE": "async"}
        )
        return (await child.communicate())[0].decode()
    return await asyncio.gather(one("same"), one("same"))

print(asked("first"))
done = run("one", "worker")
print(done.returncode, done.stdout, done.stderr, Path("one.txt").read_text())
print(asyncio.run(several()))
print(subprocess.check_output([sys.executable, "-c", "import asking; print(asking.asked('inline'))"]))
Path("made.py").write_text("import asking; print(asking.asked('made'))")
print(subprocess.check_output(f"{sys.executable} made.py; echo and more", shell=True))
"""

THROUGH_OS = """
import os, pty, sys
words = [sys.executable, "child.py"]
print(os.system(f"{sys.executable} child.py shell"))
print(os.spawnv(os.P_WAIT, sys.executable, [*words, "spawned"]))
print(os.waitpid(os.posix_spawn(sys.executable, [*words, "posix"], {**os.environ, "ROLE": "p"}), 0)[1])
print(pty.spawn([*words, "terminal"]))
sys.stdout.flush()
os.execv(sys.executable, [*words, "replaced"])
"""


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider(pace_s=0.002) as provider:
        yield provider


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("asking.py", ASKING), ("child.py", CHILD), ("agent.py", AGENT)):
        (tmp_path / name).write_text(text)
    return tmp_path


def recorded(folder: Path, provider: Provider, *words: str) -> tuple[Home, str]:
    home = Home(folder / "home", {**provider.environment, "PYTHONDONTWRITEBYTECODE": "1"})
    home.folder.mkdir()
    done = home.playhead("record", *words, "agent.py", cwd=folder)
    assert done.returncode == 0, done.stderr
    provider.close()
    return home, done.stdout


def processes(report: dict) -> dict[str, tuple[str, int]]:
    return {one["name"]: (one["verdict"], one["exact"]) for one in report["processes"]}


def test_each_is_executed_again_with_its_own_tape(provider: Provider, folder: Path):
    home, _ = recorded(folder, provider)
    for name in ("one", "same"):
        (folder / f"{name}.txt").unlink()
    status, report = home.report("agent-1")
    assert report["divergences"] == [], json.dumps(report, indent=1)
    assert (status, report["verdict"]) == (0, "identical")
    assert processes(report) == {
        # Of the agent its call and five processes; of child.py two calls, and stdin.
        "agent.py": ("identical", 6),
        "child.py one": ("identical", 3),
        "child.py same": ("identical", 3),
        "child.py same (2)": ("identical", 3),
        "-c": ("identical", 1),
        "made.py": ("identical", 1),
    }
    assert report["boundaries"]["http"]["exact"] == 1 + 3 * 2 + 2
    assert report["outputs"]["stdout of child.py one"]["identical"]
    assert report["outputs"]["exit of child.py one"]["tape"] == "3"
    assert not list(folder.glob("*.txt"))


def test_however_they_were_started(provider: Provider, folder: Path):
    (folder / "agent.py").write_text(THROUGH_OS)
    (folder / "child.py").write_text("import sys; from asking import asked; print(asked(sys.argv[1]))")
    home, said = recorded(folder, provider)
    assert said.splitlines()[-1], "what replaced the agent has printed"
    status, report = home.report("agent-1")
    assert report["divergences"] == [], json.dumps(report, indent=1)
    assert (status, report["verdict"]) == (0, "identical")
    assert processes(report) == {
        "agent.py": ("identical", 5),
        "child.py shell": ("identical", 1),
        "child.py spawned": ("identical", 1),
        "child.py posix": ("identical", 1),
        "child.py terminal": ("identical", 1),
        "child.py replaced": ("identical", 1),
    }


@pytest.mark.acceptance
def test_what_a_child_does_otherwise_is_in_the_report(provider: Provider, folder: Path):
    home, _ = recorded(folder, provider)
    script = (folder / "child.py").read_text()
    (folder / "child.py").write_text(script.replace('asked("again")', 'asked("once more")'))
    status, report = home.report("agent-1")
    assert (status, report["verdict"]) == (0, "identical")
    missing = {one["name"]: one["detail"] for one in report["processes"] if one["detail"]}
    assert len(missing) == 3 and set(missing.values()) == {"child.py differs from the tape's digest"}
    status, report = home.report("agent-1", "--force")
    assert (status, report["verdict"]) == (3, "blocked")
    assert {one["process"] for one in report["divergences"]} == set(missing)
    first = report["first_divergence"]
    assert (first["process"], first["kind"]) == ("child.py one", "blocked")
    assert "once more" in first["now"]
    text = home.playhead("replay", "agent-1", "--force", env=home.bare).stdout
    assert "process agent.py: identical, exact 6/6" in text
    assert "process child.py one: blocked, exact 2/3" in text


FORKING = """
import multiprocessing, os, random, sys, time
from asking import asked

def work(name, results):
    results.put((name, asked(name), os.getpid(), random.random()))

print(asked("first"))
for name in ("one", "two"):
    pid = os.fork()
    if pid == 0:
        print("in", name, asked(name), time.time(), random.random(), flush=True)
        if name == "two":
            inner = os.fork()
            if inner == 0:
                print("deep", asked("deep"), flush=True)
                os._exit(5)
            print(os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1]), flush=True)
        os._exit(3)
    print(pid, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
results = multiprocessing.get_context("fork").Queue()
worker = multiprocessing.get_context("fork").Process(target=work, args=("worker", results))
worker.start()
print(results.get(), asked("meanwhile"))
worker.join()
print(worker.exitcode)
"""


def test_forks_go_on_with_tapes_of_their_own(provider: Provider, folder: Path):
    (folder / "agent.py").write_text(FORKING)
    home, said = recorded(folder, provider)
    assert "in one" in said and "deep" in said
    status, report = home.report("agent-1")
    assert report["divergences"] == [], json.dumps(report, indent=1)
    assert (status, report["verdict"]) == (0, "identical")
    assert processes(report) == {
        "agent.py": ("identical", 6),
        "fork of agent.py": ("identical", 1),
        "fork of agent.py (2)": ("identical", 2),
        "fork of agent.py (3)": ("identical", 1),
        "fork of agent.py (4)": ("identical", 2),
    }
    assert report["outputs"]["exit of fork of agent.py (4)"]["tape"] == "0"
