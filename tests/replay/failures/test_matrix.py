"""Failures that are injected into agents over real SDKs are found: type, code and step."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
from support.failing.agents import run_of
from support.failing.good_runs import GOOD, Good
from support.failing.more_faults import MORE_FAULTS, MORE_GOOD
from support.failing.other_faults import FAULTS, Fault
from support.failing.remote_faults import REMOTE_FAULTS
from support.servers.scripted import ScriptedServer

from playhead_replay.failures.find import Failure, failures_of

APART = [Path(sys.prefix, name) for name in ("apart-sdks", "apart-frameworks")]


@pytest.fixture(autouse=True, scope="module")
def apart() -> Iterator[None]:
    """SDKs and frameworks that are installed in folders of their own can be imported."""
    sys.path += map(str, APART)
    yield
    for path in APART:
        sys.path.remove(str(path))


def failures(program: Callable[[ScriptedServer], object]) -> list[Failure]:
    run = run_of(program)
    return failures_of(run)


def wrong_faults(faults: Sequence[Fault]) -> list[str]:
    wrong: list[str] = []
    for kind, code, place, program in faults:
        found = failures(program)
        told = [(one.type, one.code, one.place) for one in found if not one.recovered]
        if told != [(kind, code, place)]:
            wrong.append(f"{(kind, code, place)}: {found}")
    return wrong


def false_alarms(programs: Sequence[Good]) -> list[str]:
    chosen, wrong = random.Random(40), list[str]()
    for program in programs:
        found = [one for one in failures(partial(program, chosen=chosen)) if not one.recovered]
        if found:
            wrong.append(f"{program.__doc__}: {found}")
    return wrong


def test_injected_faults_are_found_and_good_runs_have_none():
    assert wrong_faults(FAULTS[::19]) == []
    assert false_alarms(GOOD[::7]) == []


@pytest.mark.acceptance
@pytest.mark.timeout(1800)
def test_ninety_faults_are_found_and_two_hundred_good_runs_have_none(
    capsys: pytest.CaptureFixture[str],
):
    wrong = wrong_faults(FAULTS)
    alarms = false_alarms([GOOD[number % len(GOOD)] for number in range(200)])
    with capsys.disabled():
        print(
            f"\n{90 - len(wrong)} of 90 faults are found, {len(alarms)} false alarms in 200 good runs",
            *wrong,
            *alarms,
            sep="\n",
        )
    assert len(FAULTS) == 90 and len(wrong) <= 4 and not alarms


def test_more_faults_are_found_and_texts_about_failures_are_none():
    assert wrong_faults(MORE_FAULTS[::12]) == []
    assert false_alarms(MORE_GOOD[::5]) == []


@pytest.mark.acceptance
@pytest.mark.timeout(1800)
def test_each_of_more_faults_is_found(capsys: pytest.CaptureFixture[str]):
    wrong, alarms, count = wrong_faults(MORE_FAULTS), false_alarms(MORE_GOOD), len(MORE_FAULTS)
    with capsys.disabled():
        print(f"\n{count - len(wrong)} of {count} more faults are found", *wrong, *alarms, sep="\n")
    assert len({fault[:2] for fault in MORE_FAULTS}) == 18 and not wrong and not alarms


def test_faults_over_mcp_and_grpc_are_found():
    assert wrong_faults(REMOTE_FAULTS[::8]) == []


@pytest.mark.acceptance
@pytest.mark.timeout(900)
def test_each_fault_over_mcp_and_grpc_is_found(capsys: pytest.CaptureFixture[str]):
    wrong = wrong_faults(REMOTE_FAULTS)
    count = len(REMOTE_FAULTS)
    with capsys.disabled():
        print(f"\n{count - len(wrong)} of {count} faults over MCP and gRPC are found", *wrong, sep="\n")
    assert not wrong
