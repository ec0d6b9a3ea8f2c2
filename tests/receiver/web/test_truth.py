"""What the pages show is what the command line and the API say, and what programs noted themselves."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.observed.moments import WANDERER
from support.pages.chromium import Page
from support.pages.corpus import batches
from support.servers.scripted import Request, ScriptedServer, json_reply, openai_chat
from support.starting.cli import refund, store_run
from support.starting.home import Home

from playhead_genai.prices import dollars
from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_receiver.storage import Query

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

ALL = pytest.mark.acceptance
CONFIGURATION = Configuration(Addresses(http_port=0, grpc_port=None, query_port=0))


@pytest.fixture
def provider() -> Iterator[ScriptedServer]:
    def answered(request: Request) -> Any:
        return json_reply(openai_chat.completion(f"to {request.json['messages'][-1]['content']}"))

    with ScriptedServer() as server:
        server.on("/v1/chat/completions", answered, repeat=True)
        yield server


@pytest.fixture
def home(tmp_path: Path, provider: ScriptedServer) -> Home:
    return Home(tmp_path, {"OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": "k"})


def wander(home: Home, seed: int, steps: int) -> list[dict[str, Any]]:
    """Record a run of random steps. What it noted before the first step and after each."""
    work, truth = home.folder / f"work-{seed}", home.folder / f"truth-{seed}.json"
    work.mkdir()
    (work / "wanderer.py").write_text(WANDERER)
    words = ("record", "--level", "causal", "wanderer.py", str(seed), str(steps))
    done = home.playhead(*words, cwd=work, env={**home.environ, "TRUTH": str(truth)})
    assert done.returncode == 0, done.stderr
    return json.loads(truth.read_text())


SHOWN = """(async () => {
  const frame = () => new Promise(requestAnimationFrame);
  const closed = () => document.querySelector('main details:not([open]) > summary');
  for (let one = closed(); one; one = closed()) {
    one.click();
    await frame();
    await frame();
  }
  const leaf = text => {
    const colon = text.indexOf(': ');
    return [text.slice(0, colon), JSON.parse(text.slice(colon + 2))];
  };
  const value = box => {
    const branch = box.querySelector(':scope > details');
    if (!branch) return leaf(box.textContent.trim());
    const summary = branch.querySelector('summary').textContent.trim();
    const [, name, kind] = /^(.*) (list|object), \\d+$/s.exec(summary);
    const within = [...branch.querySelectorAll(':scope > .said')].map(
      one => one.querySelector(':scope > details') ? value(one) : leaf(one.textContent.trim()));
    return [name, kind === 'list' ? within.map(([, held]) => held) : Object.fromEntries(within)];
  };
  const sections = [...document.querySelectorAll('main section')];
  const heading = one => one.querySelector(':scope > h2')?.textContent ?? '';
  const states = sections.filter(one => heading(one).includes(' reported at step ')).map(value);
  const output = sections.find(one => heading(one) === 'stdout');
  const files = [...document.querySelectorAll('main .recorded > details')].map(
    one => [
      one.querySelector('summary').firstChild.textContent.trim(),
      one.querySelector('pre')?.textContent ?? null,
    ]);
  return {
    messages: [...document.querySelectorAll('main .two .said > .who')].map(
      who => ({role: who.textContent, content: who.parentElement.querySelector('pre').textContent})),
    files: Object.fromEntries(files),
    stdout: output ? output.querySelector('pre').textContent : '',
    states: Object.fromEntries(states),
    rows: [...document.querySelectorAll('main section.database tbody tr')].map(
      row => [Number(row.cells[0].textContent), row.cells[1].textContent]),
  };
})()"""
"""What the view says, read from its text after everything was unfolded."""


@pytest.mark.parametrize(("runs", "steps", "points"), [(2, 6, 10), pytest.param(5, 20, 100, marks=ALL)])
def test_the_playhead_shows_what_the_programs_had_noted(
    page: Page, home: Home, runs: int, steps: int, points: int
):
    truths = [wander(home, seed, steps) for seed in range(runs)]
    every = [(run, step) for run in range(runs) for step in range(steps + 1)]
    with Receiver(home.data_dir, CONFIGURATION) as receiver:
        for run, step in random.Random(0).sample(every, points):
            address = f"/?view=playhead&run=wanderer-{run + 1}&after={step}"
            page.open(receiver.query_endpoint + address, "main .two")
            page.wait(
                f"document.querySelector('[role=status]').textContent === 'after step {step} of {steps}'"
            )
            found = page.run(SHOWN)
            for name in ("wanderer.py", "kept.db"):  # a program may be read as a file
                found["files"].pop(name, None)
            assert found == truths[run][step], address
    assert page.complaints == []


@pytest.mark.parametrize("with_demo", [False, pytest.param(True, marks=ALL)])
def test_numbers_on_the_pages_are_those_of_the_command_line_and_the_api(
    page: Page, home: Home, with_demo: bool
):
    if with_demo:
        demo = home.start("demo", env=home.bare)
        said, problem = demo.communicate(timeout=600)
        assert demo.returncode == 0, said + problem
    store_run(home.data_dir, refund())
    corpus = batches()
    with Receiver(home.data_dir, CONFIGURATION) as receiver:
        for one in corpus:
            receiver.store.commit(one)
        while receiver.store.sum_up():
            pass
        api = httpx.get(f"{receiver.query_endpoint}/v1/runs").json()["runs"]
        listed = {one["name"]: one for one in home.runs("-n", "100")}
        idle = [one.name for one in receiver.store.runs(Query(limit=100)) if one.is_idle]
        assert len(api) + len(idle) == 1 + 3 * with_demo + len(corpus)
        assert not listed.keys() & set(idle)  # a list without a query leaves them out
        assert {one["name"] for one in api} == set(listed)
        page.open(f"{receiver.query_endpoint}/?columns={'+'.join(COLUMNS)}", "main tbody a")
        shown = {row["name"]: row for row in page.run(READ_TABLE)}
        for run in api:
            same = ("status", "steps", "errors", "input_tokens", "output_tokens", "cost_usd")
            assert {name: run[name] for name in same} == {
                name: listed[run["name"]][name] for name in same
            }
            row = shown[run["name"]]
            assert (row["status"], row["steps"]) == (run["status"], str(run["steps"]))
            assert row.get("failed", "") == str(run["errors"] or "")
            assert row["tokens"] == f"{run['input_tokens']}→{run['output_tokens']}"
            assert row.get("cost", "") == ("" if run["cost_usd"] is None else dollars(run["cost_usd"]))
            _compare_tree(page, home, receiver, run)
    assert page.complaints == []


def _compare_tree(page: Page, home: Home, receiver: Receiver, run: dict[str, Any]) -> None:
    told = json.loads(home.playhead("show", run["name"], "--json").stdout)
    page.open(f"{receiver.query_endpoint}/?run={run['name']}&rows=tree", ".row")
    tree = list(_flat(told["spans"]))
    assert page.run("Number(document.querySelector('.rows').ariaRowCount)") == len(tree)
    spans = httpx.get(f"{receiver.query_endpoint}/v1/runs/{run['name']}?limit=1000").json()["spans"]
    assert [(one["span_id"], one["depth"]) for one in spans] == tree
    assert page.run(READ_ROWS) == [
        [
            one["name"] or "(no name)",
            one["depth"] + 1,
            one["failed"],
            f"{one['input_tokens']}→{one['output_tokens']}" if one["input_tokens"] else "",
        ]
        for one in spans
    ]
    numbers = page.run(READ_NUMBERS)
    assert set(numbers) <= {one["number"] for one in told["steps"]}
    head = page.run("document.querySelector('main.run > .bar').textContent")
    assert f"{len(told['steps'])} steps, {len(tree)} spans" in head
    tokens = f"{told['input_tokens']}→{told['output_tokens']} tokens "
    assert tokens in head
    # Where nothing was used, `show` says 0, and lists say nothing.
    usd = told["cost_usd"] if told["input_tokens"] or told["output_tokens"] else None
    assert head.partition(tokens)[2].partition("steps")[0].strip() == (
        "" if usd is None else dollars(usd)
    )


def _flat(spans: list[dict[str, Any]], depth: int = 0) -> Iterator[tuple[str, int]]:
    """Id and depth of each span, depth first."""
    for one in spans:
        yield one["span_id"], depth
        yield from _flat(one["children"], depth + 1)


COLUMNS = ("status", "steps", "failed", "tokens", "cost")
READ_TABLE = """[...document.querySelectorAll('main > table tbody tr')].map(row => ({
  name: row.cells[0].textContent.trim(),
  ...Object.fromEntries([...row.cells].slice(1).map(
    one => [one.dataset.column, (one.querySelector('.badge') ?? one).textContent.trim()]))}))"""
"""The cells of each row by column. A column that is empty in all rows is not there."""
READ_NUMBERS = """[...document.querySelectorAll('.row .title > .number')]
  .map(one => Number(one.textContent)).filter(Boolean)"""
READ_ROWS = """(async () => {
  const box = document.querySelector('.rows');
  const frame = () => new Promise(requestAnimationFrame);
  const found = [];
  for (let top = 0; found.filter(Boolean).length < Number(box.ariaRowCount); top += 200) {
    if (top > box.scrollHeight) throw new Error('some rows never came');
    box.scrollTop = top;
    await frame();
    await frame();
    for (const row of box.querySelectorAll('.row')) {
      const name = row.querySelector('.title > span:not(.number):not(.twist):not(.quiet)').textContent;
      const used = /\\d+→\\d+/.exec(row.lastElementChild.textContent)?.[0] ?? '';
      found[row.ariaRowIndex - 1] =
        [name.replace(/^✗ /, ''), Number(row.ariaLevel), name.startsWith('✗ '), used];
    }
  }
  return found;
})()"""
