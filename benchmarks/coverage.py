"""What the spans of each instrumentation hold of the same calls, by the same SDKs, in one table.

A scripted provider on loopback answers; each instrumentation has a process for each SDK, and libraries
of its own, as its own requirements resolve them. What is in the table is looked for in the spans and
events that an exporter in memory got; of playhead, in what its receiver holds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "tests")]

from covered.held import held  # noqa: E402
from covered.judging import JUDGES  # noqa: E402
from covered.replies import REPLIES  # noqa: E402
from covered.tracers import CONTENT, TRACERS, Tracer  # noqa: E402
from covered.xai import xai_server  # noqa: E402
from support.answers.sdk_table import surroundings  # noqa: E402
from support.servers.scripted import Reply, ScriptedServer  # noqa: E402

PLACE = HERE.parent / ".venv-coverage"
PATIENCE_S = 300
Cells = dict[str, str]
"""Tracer → yes or no."""
Table = dict[tuple[str, str, str], Cells]
"""By SDK, case and fact."""


def libraries(name: str) -> Path:
    """A folder with what is listed in ``covered/requirements/NAME.txt``, installed at first use.

    A list that cannot be installed leaves the reason in a file beside it.
    """
    folder, failed = PLACE / name, PLACE / f"{name}.failed"
    python = PLACE / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", PLACE], check=True)
    if not folder.exists() and not failed.exists():
        pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--target"]
        listed = HERE / "covered" / "requirements" / f"{name}.txt"
        done = subprocess.run([*pip, str(folder), "-r", str(listed)], capture_output=True, text=True)
        if done.returncode:
            failed.write_text(done.stderr.strip().splitlines()[-1])
    return folder


def replies_of(sdk: str) -> dict[str, list[Reply]]:
    """What the provider answers to each case."""
    if sdk == "xai" and str(libraries("sdks")) not in sys.path:
        sys.path.append(str(libraries("sdks")))  # its messages are made by its own classes
    return REPLIES[sdk]()


@contextmanager
def provider(sdk: str, replies: dict[str, list[Reply]]) -> Iterator[str]:
    """Where a provider answers so: of each case below a path of its own."""
    if sdk == "xai":
        with xai_server(replies) as address:
            yield address
        return
    with ScriptedServer() as server:
        for case, answers in replies.items():
            start = f"/{case.replace(' ', '-')}/"
            server.on(lambda request, start=start: request.path.startswith(start), *answers, repeat=True)
        yield server.url


def spans_of(tracer: Tracer, sdk: str) -> tuple[dict[str, Any], str]:
    """What the tracer has of each case; and, where it ended early, its last words."""
    replies, sdks = replies_of(sdk), libraries("sdks")
    with provider(sdk, replies) as url, tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "spans.json"
        words = [str(HERE / "covered" / "worker.py"), tracer.name, sdk, url, str(out)]
        words.append(",".join(replies))
        environ = {**os.environ, **CONTENT, **surroundings(Path(folder)), **(tracer.environment or {})}
        if tracer.name == "playhead":
            environ |= {"PLAYHEAD_DATA_DIR": f"{folder}/data", "PLAYHEAD_SPOOL_DIR": f"{folder}/spool"}
            environ |= {"PLAYHEAD_LEVEL": "exchanges"}
            command = [sys.executable, "-m", "playhead_cli"]
            done = run([*command, "record", *words, str(sdks)], environ)
            run([*command, "rederive"], environ)
            return held(Path(folder) / "data"), done if done.startswith("ended") else ""
        own = libraries(tracer.name)
        if not own.exists():
            return {}, (PLACE / f"{tracer.name}.failed").read_text()
        done = run([str(PLACE / "bin" / "python"), *words, str(own), str(sdks)], environ)
        found = json.loads(out.read_text()) if out.exists() else {}
        return found, "" if any(found.values()) else f"no span; {done}"


def run(command: list[str], environ: dict[str, str]) -> str:
    """What a program said on stderr: its last line if it failed, else what is about instrumenting."""
    try:
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        return f"ended with nothing after {PATIENCE_S} s"
    lines = done.stderr.strip().splitlines() or [""]
    told = next((line for line in lines if "instrument" in line), lines[0])
    return f"ended with {done.returncode}: {lines[-1]}" if done.returncode else told


def judged(sdks: list[str], tracers: list[Tracer]) -> tuple[Table, dict[str, str]]:
    """All cells; and why a tracer has nothing of an SDK."""
    cells: Table = {}
    reasons: dict[str, str] = {}
    for sdk in sdks:
        replies = replies_of(sdk)
        for tracer in tracers:
            if sdk not in tracer.places:
                continue
            print(f"{sdk}: {tracer.name}", file=sys.stderr, flush=True)
            found, problem = spans_of(tracer, sdk)
            if problem:
                reasons[f"{tracer.name}, {sdk}"] = problem
            for case, answers in replies.items():
                spans = found.get(case, [])
                for fact, holds in JUDGES[case].items():
                    yes = bool(spans) and holds(spans, answers)
                    cells.setdefault((sdk, case, fact), {})[tracer.name] = "yes" if yes else "no"
    return cells, reasons


def table(cells: Table, names: list[str]) -> str:
    """Each case as a row of a Markdown table: what each lacks of it; ``–``: not for this SDK."""
    lines = [f"| SDK | case | {' | '.join(names)} |", "|---" * (len(names) + 2) + "|"]
    for sdk, case in dict.fromkeys(key[:2] for key in cells):
        facts = {key[2]: by_name for key, by_name in cells.items() if key[:2] == (sdk, case)}
        row = " | ".join(
            _held({fact: one.get(name, "") for fact, one in facts.items()}) for name in names
        )
        lines.append(f"| {sdk} | {case} | {row} |")
    return "\n".join(lines)


def _held(answers: dict[str, str]) -> str:
    lacks = [fact for fact, answer in answers.items() if answer == "no"]
    if not any(answers.values()):
        return "–"
    if not lacks:
        return "all"
    return "nothing" if len(lacks) == len(answers) else f"not {', '.join(lacks)}"


def summary(cells: Table, names: list[str]) -> str:
    """For each SDK, how many facts each instrumentation holds."""
    lines = [f"| SDK | facts | {' | '.join(names)} |", "|---" * (len(names) + 2) + "|"]
    for sdk in dict.fromkeys(key[0] for key in cells):
        own = [by_name for key, by_name in cells.items() if key[0] == sdk]
        row = [
            str(sum(one.get(name) == "yes" for one in own)) if any(name in one for one in own) else "–"
            for name in names
        ]
        lines.append(f"| {sdk} | {len(own)} | {' | '.join(row)} |")
    return "\n".join(lines)


def versions() -> str:
    """What was compared, as it is installed."""
    found = {
        path.name.removesuffix(".dist-info").replace("-", " ")
        for name in ("sdks", *TRACERS)
        for path in (PLACE / name).glob("*.dist-info")
        if any(word in path.name for word in _TOLD) and "semantic" not in path.name
    }
    return ", ".join(sorted(one.replace("_", "-") for one in found))


_TOLD = (
    "openai", "anthropic", "google_genai", "boto3", "mistralai", "cohere", "groq", "ollama",
    "generativeai", "bedrock", "botocore-", "openlit", "logfire-", "together", "huggingface_hub",
    "litellm", "xai_sdk",
)  # fmt: skip


def main() -> int:
    """Print both tables, write the JSON; 1 where playhead lacks a fact."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sdks", default=",".join(REPLIES))
    parser.add_argument("--tracers", default=",".join(TRACERS))
    parser.add_argument("--json", type=Path, help="write all cells here")
    parser.add_argument("--of", type=Path, nargs="*", help="only print what such files say together")
    given = parser.parse_args()
    if given.of:
        cells, reasons = read(given.of)
    else:
        tracers = [TRACERS[name] for name in given.tracers.split(",")]
        cells, reasons = judged(given.sdks.split(","), tracers)
    names = [name for name in TRACERS if any(name in one for one in cells.values())]
    print(f"{versions()}\n\n{summary(cells, names)}\n\n{table(cells, names)}\n")
    for who, why in reasons.items():
        print(f"* {who}: {why}")
    if given.json:
        rows = [[*key, by_name] for key, by_name in cells.items()]
        given.json.write_text(json.dumps({"rows": rows, "reasons": reasons}, indent=1) + "\n")
    return int(any(one.get("playhead") == "no" for one in cells.values()))


def read(paths: list[Path]) -> tuple[Table, dict[str, str]]:
    """The cells of several runs; where two have one, the later file's."""
    cells: Table = {}
    reasons: dict[str, str] = {}
    for path in paths:
        said = json.loads(path.read_text())
        reasons |= said["reasons"]
        for sdk, case, fact, by_name in said["rows"]:
            cells.setdefault((sdk, case, fact), {}).update(by_name)
    return cells, reasons


if __name__ == "__main__":
    raise SystemExit(main())
