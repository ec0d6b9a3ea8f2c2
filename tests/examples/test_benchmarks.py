"""The benchmarks measure what they say: their workloads answer, their figures are differences."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)

    def load(name):
        return __import__(name)

    yield load
    for (
        name
    ) in "workloads latency growth replay replay_program recording recording_worker startup".split():
        sys.modules.pop(name, None)


def test_every_workload_runs(benchmark):
    workloads = benchmark("workloads")
    gpt = workloads.client()
    for name, (function, _, _) in workloads.WORKLOADS.items():
        (taken,) = function(gpt, 1)
        assert taken > 0, name


def test_the_long_history_is_115_kilobytes(benchmark):
    workloads = benchmark("workloads")
    messages = workloads.history(workloads.STEPS)
    assert len(messages) == 102
    assert 110_000 < len(json.dumps(messages)) < 120_000


def test_a_stream_has_as_many_chunks_as_it_says(benchmark):
    workloads = benchmark("workloads")
    stream = workloads.client().chat.completions.create(
        model="gpt-4o", messages=workloads.history(0), stream=True
    )
    assert sum(1 for _ in stream) == workloads.CHUNKS


def test_figures_are_differences_to_off_in_the_same_round(benchmark):
    latency = benchmark("latency")
    figures = {
        "small call": {
            "off": {"wall": [10.0, 20.0, 30.0], "cpu": [1.0, 1.0, 1.0]},
            "playhead": {"wall": [11.0, 25.0, 32.0], "cpu": [3.0, 3.0, 4.0]},
        }
    }
    summary = latency.summary(figures)
    assert summary["small call"]["playhead"]["wall"] == {
        "median": 25.0,
        "added": 2.0,
        "least": 1.0,
        "greatest": 5.0,
    }
    assert latency.table(summary, "cpu").splitlines()[2] == "| small call | 1.0 | +2.0 [+2.0 … +3.0] |"


@pytest.mark.acceptance
def test_the_agent_of_n_steps_says_as_much_at_every_step():
    said = [
        int(
            subprocess.run(
                [sys.executable, BENCHMARKS / "steps_agent.py", str(steps)],
                env={"PATH": os.environ["PATH"]},
                check=True,
                capture_output=True,
            ).stdout
        )
        for steps in (10, 20)
    ]
    assert 22_000 < said[1] - said[0] < 25_000


def test_growth_table_shows_bytes_a_step(benchmark):
    growth = benchmark("growth")
    row = {"steps": 50, "said": 100_000, "spool": 150_000, "wire": 50_000, "store": 25_000}
    assert growth.table([row]).splitlines()[2] == (
        "| 50 | 100,000 (2,000) | 150,000 (3,000) | 50,000 (1,000) | 25,000 (500) |"
    )


def test_a_replayed_call_is_measured_and_long_tapes_are_weighed(benchmark):
    replay = benchmark("replay")
    figures = {"playhead": {"10": [2.0, 4.0, 3.0], "500": [5.0]}, "vcrpy": {"10": [7.0], "500": []}}
    row = {
        "tape": "small requests",
        "calls": 2000,
        "requests_bytes": 100_000,
        "file_bytes": 5_400_000,
        "load_ms": 210,
        "load_mib": 12.5,
        "replay_mib": 3.5,
        "peak_mib": 30.0,
    }
    lines = replay.tables(figures, [row]).splitlines()
    assert lines[2:4] == [
        "| 10 | +3 [+2 … +4] | +7 [+7 … +7] |",
        "| 500 | +5 [+5 … +5] | not measured |",
    ]
    whole = "| 2,000 calls, small requests | 0.1 MB | 5.4 MB | 210 ms | 12.5 MiB | 3.5 MiB | 30.0 MiB |"
    assert lines[-1] == whole


def test_the_program_that_is_replayed_asks_what_it_says(benchmark):
    program = benchmark("replay_program")
    assert program.messages(0, 5) == [
        {"role": "user", "content": "question 0"},
        {"role": "user", "content": "call 5"},
    ]
    assert 90_000 < len(json.dumps(program.messages(100_000, 99))) < 115_000
    assert program.messages(100_000, 40)[:-1] == program.messages(100_000, 41)[:41]


def test_the_playhead_variant_of_replay_answers_without_a_provider(benchmark, tmp_path):
    replay = benchmark("replay")
    tape = tmp_path / "3.tape"
    with replay.provider() as url:
        assert len(replay.run("playhead", tape, 3, 0, url, replaying=False)["ns"]) == 3
    said = replay.run("playhead", tape, 3, 0, url, replaying=True)
    assert len(said["ns"]) == 3
    assert said["peak_kib"] > 0


def test_reads_are_of_the_module_that_the_benchmark_says(benchmark):
    worker = benchmark("recording_worker")
    assert (
        worker.reader(worker.WAYS["time.time()"][1], "bench_agent").__globals__["__name__"]
        == "bench_agent"
    )
    (taken,) = worker.of_reads("time.time()", "httpx.bench")
    assert 0 < taken < 1e6


def test_starts_are_compared_with_neighbours_that_configure_the_sdk_without_playhead(
    benchmark, tmp_path
):
    startup = benchmark("startup")
    found = startup.starts(tmp_path, "http://127.0.0.1:9")
    (base, others), (plain, recorded) = found.values()
    assert [one.name for one in others] == ["control", "disabled", "exchanges", "causal", "strict"]
    assert [one.name for one in recorded] == ["control", "exchanges", "causal", "strict"]
    assert others[0] == startup.Start("control", base.words, base.environ)
    assert plain.words == recorded[0].words
    says = "import sys; print([n for n in sys.modules if n == 'opentelemetry.sdk.trace' or 'play' in n])"
    words = [*base.words[:-1], says]
    done = subprocess.run(words, env=base.environ, capture_output=True, text=True, check=True)
    assert done.stdout == "['opentelemetry.sdk.trace']\n"
    figures = {
        one: [1.0, 2.0, 3.0] for clock in startup.CLOCKS for one in (clock, f"{clock} of the base")
    }
    said = startup.tables({"x": {"control": figures}})
    assert "| control | +2 [+1 … +3] | +2 [+1 … +3] |" in said
