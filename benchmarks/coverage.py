"""Compare which facts of the same SDK calls the spans of each instrumentation contain.

A scripted provider on loopback answers. Each instrumentation runs in a process of its own for each SDK,
with the libraries that its own requirements resolve to. Its facts are searched in the spans and events
of an in-memory exporter; those of playhead in the data of its receiver.
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
    """Return the spans of each case; and the last line of stderr if the tracer ended early."""
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
    """Run a program and return the last line of stderr if it failed, else a line about instrumenting."""
    try:
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        return f"ended with nothing after {PATIENCE_S} s"
    lines = done.stderr.strip().splitlines() or [""]
    told = next((line for line in lines if "instrument" in line), lines[0])
    return f"ended with {done.returncode}: {lines[-1]}" if done.returncode else told


def judged(sdks: list[str], tracers: list[Tracer]) -> tuple[Table, dict[str, str]]:
    """Return all cells, and why a tracer has no facts of an SDK."""
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


def details(cells: Table, names: list[str]) -> str:
    """Return a Markdown table with a row for each SDK and case: the facts that each tracer lacks.

    ``–``: no instrumentation for this SDK.
    """
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
    return "nothing" if len(lacks) == len(answers) else f"without {', '.join(lacks)}"


def by_sdk(cells: Table, names: list[str]) -> str:
    """Return a Markdown table: how many facts of each SDK each tracer has."""
    lines = [f"| SDK | facts | {' | '.join(names)} |", "|---" * (len(names) + 2) + "|"]
    for sdk in dict.fromkeys(key[0] for key in cells):
        facts = [by_name for key, by_name in cells.items() if key[0] == sdk]
        row = [_share(facts, name).partition("/")[0] for name in names]
        lines.append(f"| {sdk} | {len(facts)} | {' | '.join(row)} |")
    return "\n".join(lines)


def by_case(cells: Table, names: list[str]) -> str:
    """Return a Markdown table: facts of each case, ``had/all`` over the SDKs that a tracer covers."""
    lines = [f"| case | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for case in dict.fromkeys(key[1] for key in cells):
        facts = [by_name for key, by_name in cells.items() if key[1] == case]
        lines.append(f"| {case} | {' | '.join(_share(facts, name) for name in names)} |")
    return "\n".join(lines)


def _share(facts: list[Cells], name: str) -> str:
    covered = [by_name[name] for by_name in facts if name in by_name]
    return f"{covered.count('yes')}/{len(covered)}" if covered else "–"


def versions() -> str:
    """Return the installed versions of everything compared."""
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
    """Print the tables and write the JSON; return 1 if playhead lacks a fact."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sdks", default=",".join(REPLIES))
    parser.add_argument("--tracers", default=",".join(TRACERS))
    parser.add_argument("--json", type=Path, help="write all cells here")
    parser.add_argument("--of", type=Path, nargs="*", help="only print the cells of such files")
    parser.add_argument("--details", action="store_true", help="also print what each lacks in each case")
    given = parser.parse_args()
    if given.of:
        cells, reasons = read(given.of)
    else:
        tracers = [TRACERS[name] for name in given.tracers.split(",")]
        cells, reasons = judged(given.sdks.split(","), tracers)
    names = [name for name in TRACERS if any(name in one for one in cells.values())]
    print(f"{versions()}\n\n{by_sdk(cells, names)}\n\n{by_case(cells, names)}\n")
    if given.details:
        print(f"{details(cells, names)}\n")
    for who, why in reasons.items():
        print(f"* {who}: {why}")
    if given.json:
        rows = [[*key, by_name] for key, by_name in cells.items()]
        given.json.write_text(json.dumps({"rows": rows, "reasons": reasons}, indent=1) + "\n")
    return int(any(one.get("playhead") == "no" for one in cells.values()))


def read(paths: list[Path]) -> tuple[Table, dict[str, str]]:
    """Return the cells of several runs; later files win."""
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
