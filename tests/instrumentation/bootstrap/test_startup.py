"""At its start a process imports only the parts of playhead that its level asks for."""

from __future__ import annotations

import json

import pytest
from support.endpoints import http_endpoint

from playhead_semconv.boundaries import BOUNDARIES, LEVELS, Boundary, selected

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


def loaded(program, **environ: str) -> set[str]:
    done = program(LOADED).instrumented(PLAYHEAD_QUIET="1", OTEL_TRACES_EXPORTER="none", **environ)
    assert (done.returncode, done.stderr) == (0, "")
    return set(json.loads(done.stdout))


def installers(rows: tuple[Boundary, ...]) -> set[str]:
    places = [place for row in rows for place in (*row.at_start, *(at for _, at in row.on_import))]
    return {f"{ROOM}.{place.partition(':')[0]}" for place in places}


@pytest.mark.parametrize("variable", ["PLAYHEAD_DISABLED", "OTEL_SDK_DISABLED"])
def test_where_recording_is_switched_off_only_the_entry_points_are_there(program, variable: str):
    found = {name for name in loaded(program, **{variable: "true"}) if name.startswith(OURS)}
    assert found == {
        ROOM,
        *(f"{ROOM}.bootstrap{name}" for name in ("", ".off", ".distro", ".configurator")),
        f"{ROOM}.bootstrap.instrumentor",
    }


@pytest.mark.parametrize("level", LEVELS)
def test_what_a_level_does_not_ask_for_is_not_imported(program, level: str):
    asked = selected(level)  # pyright: ignore[reportArgumentType]
    rest = tuple(row for row in BOUNDARIES if row not in asked)
    found = loaded(program, PLAYHEAD_LEVEL=level)
    assert found & (installers(rest) - installers(asked)) == set()
    assert found & set(OF_OTHERS) == set()


def test_a_recording_of_exchanges_starts_without_what_makes_others_exact_and_what_reads_bodies(program):
    found = loaded(program)
    exact = (f"{ROOM}.determinism", f"{ROOM}.host", f"{ROOM}.playback")
    assert [one for one in found if one.startswith(exact)] == []
    assert not [one for one in found if one.startswith("playhead_semconv.wire")]


@pytest.mark.parametrize("level", LEVELS)
def test_a_recording_starts_without_what_compares_a_replay_with_it(program, level: str):
    found = loaded(program, PLAYHEAD_LEVEL=level)
    comparing = (
        "playhead_semconv.volatile",
        "playhead_semconv.difference",
        "difflib",
        f"{ROOM}.playback",
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
