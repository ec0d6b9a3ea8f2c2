"""At its start a process imports only the parts of playhead that its level asks for."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator

import pytest
from support.servers.endpoints import http_endpoint
from support.starting.programs import Program

from playhead_core.boundaries import BOUNDARIES, LEVELS, Boundary, selected

OURS = "playhead"
ROOM = "playhead_instrumentation"

LOADED = """
import json, sys
print(json.dumps(sorted(sys.modules)))
"""

DELIVERED = f"""
import playhead
playhead.state({{"n": 1}})
assert playhead.flush()
{LOADED}
"""

OF_OTHERS = ("sqlite3", "pydantic", "httpx", "grpc", "tomllib", "multiprocessing.connection")
"""Modules of others that no recording needs to start."""


def loaded(made: Program, **environ: str) -> set[str]:
    done = made.instrumented(PLAYHEAD_QUIET="1", OTEL_TRACES_EXPORTER="none", **environ)
    assert (done.returncode, done.stderr) == (0, "")
    return set(json.loads(done.stdout))


@pytest.fixture(scope="module")
def loaded_at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], set[str]]]:
    """What is loaded at a level, looked at once."""
    made = Program.of(tmp_path_factory.mktemp("program"), LOADED)
    yield functools.cache(lambda level: loaded(made, PLAYHEAD_LEVEL=level))
    made.close()


def installers(rows: tuple[Boundary, ...]) -> set[str]:
    places = [place for row in rows for place in (*row.at_start, *(at for _, at in row.on_import))]
    return {f"{ROOM}.{place.partition(':')[0]}" for place in places}


@pytest.mark.parametrize("variable", ["PLAYHEAD_DISABLED", "OTEL_SDK_DISABLED"])
def test_where_recording_is_switched_off_only_the_entry_points_are_there(program, variable: str):
    found = {one for one in loaded(program(LOADED), **{variable: "true"}) if one.startswith(OURS)}
    assert found == {
        ROOM,
        *(f"{ROOM}.bootstrap{name}" for name in ("", ".early", ".distro", ".configurator")),
        f"{ROOM}.bootstrap.instrumentor",
    }


@pytest.mark.parametrize("level", LEVELS)
def test_what_a_level_does_not_ask_for_is_not_imported(loaded_at, level: str):
    asked = selected(level)  # pyright: ignore[reportArgumentType]
    rest = tuple(row for row in BOUNDARIES if row not in asked)
    found = loaded_at(level)
    assert found & (installers(rest) - installers(asked)) == set()
    assert found & set(OF_OTHERS) == set()


def test_a_recording_of_exchanges_starts_without_what_makes_others_exact_and_what_reads_bodies(
    loaded_at,
):
    found = loaded_at("exchanges")
    libraries = "ambient files multiprocessing sqlite_files standard_streams subprocess_full system"
    exact = (
        f"{ROOM}.scheduler.",
        f"{ROOM}.replayer.",
        *(f"{ROOM}.libraries.{name}." for name in libraries.split()),
    )
    assert [one for one in found if one.startswith(exact)] == []
    assert not [one for one in found if one.startswith("playhead_genai.providers")]


@pytest.mark.parametrize("level", LEVELS)
def test_a_recording_starts_without_what_compares_a_replay_with_it(loaded_at, level: str):
    found = loaded_at(level)
    comparing = (
        "playhead_core.normalize",
        "playhead_core.difference",
        "difflib",
        f"{ROOM}.replayer.",
    )
    assert [one for one in found if one.startswith(comparing)] == []


@pytest.mark.parametrize("level", LEVELS)
def test_what_goes_to_a_receiver_needs_no_protobuf_library(program, level: str):
    with http_endpoint(windows=1) as endpoint:
        done = program(DELIVERED).instrumented(
            PLAYHEAD_QUIET="1",
            PLAYHEAD_LEVEL=level,
            PLAYHEAD_ENDPOINT=endpoint.url,
            PLAYHEAD_ENDPOINT_KIND="auto",
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert len(endpoint.windows()) >= 1
    assert not any(one.startswith("google.protobuf") for one in json.loads(done.stdout))
