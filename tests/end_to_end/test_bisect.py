"""`git bisect run playhead replay --bisect GOLDEN` in a real repository."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.starting.warm import playhead

from playhead_cli.demo.provider import Provider

AGENT = """
import json, os, urllib.request
from wording import question

body = {"model": "gpt-5.5", "messages": [{"role": "user", "content": question("Oslo")}]}
request = urllib.request.Request(
    os.environ["OPENAI_BASE_URL"] + "/chat/completions",
    json.dumps(body).encode(),
    {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]},
)
for attempt in range(2):
    try:
        answer = json.load(urllib.request.urlopen(request))
        break
    except urllib.error.HTTPError:
        pass
print(answer["choices"][0]["message"]["role"])
"""
WORDING = 'def question(city):\n    return f"What do I pack for {city}?"\n'
PATIENCE_S = 240.0
GOLDEN = "goldens/pack.tape"
WHO = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")


class Repository:
    """A clone with an agent, and a provider that it was recorded with."""

    def __init__(self, folder: Path, provider: Provider) -> None:
        self.folder = folder
        self.folder.mkdir()
        kept = ("PLAYHEAD", "OTEL", "OPENAI", "GIT")
        self.environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith(kept)},
            "HOME": str(folder),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            **dict.fromkeys(WHO, "nobody"),
        }
        self.provider = provider
        self.git("init", "-q", "-b", "main")
        self.commits: list[str] = []

    def run(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            cwd=self.folder,
            env={**self.environ, **environ},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )

    def playhead(self, *words: str) -> subprocess.CompletedProcess[str]:
        return playhead(*words, environ=self.environ, cwd=self.folder, timeout_s=PATIENCE_S)

    def git(self, *words: str) -> str:
        done = self.run("git", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def commit(self, message: str, **files: str) -> None:
        for name, text in files.items():
            (self.folder / f"{name}.py").write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        self.commits.append(self.git("rev-parse", "HEAD").strip())

    def record(self) -> None:
        live = self.folder.parent / "live.tape"
        words = [sys.executable, "-m", "playhead_instrumentation", "record", "--tape", str(live)]
        done = self.run(*words, "--", "agent.py", **self.provider.environment)
        assert done.stdout == "assistant\n", done.stderr
        done = self.playhead("golden", "add", str(live), "--name", "pack", "--dir", "goldens")
        assert done.returncode == 0, done.stderr

    def judge(self, golden: str = GOLDEN) -> subprocess.CompletedProcess[str]:
        return self.playhead("replay", "--bisect", golden)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """Seven commits; the fifth breaks what the golden of the second holds."""
    with Provider(pace_s=0.0) as provider:
        made = Repository(tmp_path_factory.mktemp("bisect") / "clone", provider)
        made.commit("an agent", agent=AGENT, wording=WORDING)
        made.record()
        made.commit("a golden")
        made.commit("does not compile", wording=WORDING.replace("def", "deaf"))
        made.commit("compiles again", wording=f"# what the agent asks\n{WORDING}")
        made.commit("asks for more", wording=WORDING.replace("pack", "take along"))
        made.commit("needs what is not installed", agent=f"import surely_not_there\n{AGENT}")
        made.commit("needs it no more", agent=f"{AGENT}# the end\n")
    return made


@pytest.mark.acceptance
def test_git_bisect_finds_the_commit_that_broke_a_golden(repository: Repository):
    verdicts: list[int] = []
    for commit in repository.commits:
        repository.git("checkout", "-q", commit)
        verdicts.append(repository.judge().returncode)
    assert verdicts == [125, 0, 125, 0, 1, 125, 1]

    first, *_, last = repository.commits
    repository.git("bisect", "start", last, first)
    found = repository.git("bisect", "run", "playhead", "replay", "--bisect", GOLDEN)
    assert f"{repository.commits[4]} is the first bad commit" in found
    # Where the golden was not there yet, that of the bad commit judges.
    repository.git("checkout", "-q", first)
    assert repository.judge().returncode == 0
    repository.git("bisect", "reset", "main")


@pytest.mark.acceptance
def test_what_is_no_golden_here_says_nothing_of_the_commit(repository: Repository):
    golden = repository.folder / GOLDEN
    text = golden.read_text()
    golden.write_text(text.replace("playhead tape, text 1", "playhead tape, text 9"))
    done = repository.judge()
    assert done.returncode == 125
    assert (
        "cannot be judged: pack.tape was written by a later version of playhead (format 9)"
        in done.stderr
    )
    golden.write_text(text)
    (repository.folder / "agent.py").unlink()
    done = repository.judge()
    assert done.returncode == 125
    assert "cannot be judged: agent.py is not in" in done.stderr
    repository.git("checkout", "-q", "main", "--", ".")


def test_a_mistake_in_the_command_ends_the_search(repository: Repository):
    for words in (["--bisect"], ["--bisect", GOLDEN, "--frmo", "3"], ["a-1", "--bisect", GOLDEN]):
        assert repository.playhead("replay", *words).returncode == 128
