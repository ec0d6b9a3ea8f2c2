"""What is recorded for one destination is delivered there and nowhere else."""

import pytest
from msgspec.structs import replace
from support.servers.endpoints import Reply
from support.starting.running import until
from support.tapes.spools import chunk, tape_exporter_for

from playhead_exporter.push import pending, push
from playhead_exporter.spool import SpoolFolders
from playhead_exporter.spool.folders import OWNER, address

pytestmark = pytest.mark.usefixtures("patient")


def leave(settings):
    """Leave one fact in the spool, as a process does whose endpoint is away."""
    tape_exporter = tape_exporter_for(settings)
    opened = tape_exporter.__enter__()
    opened.sink.append(chunk())
    until(lambda: any(one.facts for one in pending(settings)), "the fact is on disk")
    opened.close(0)
    opened.sink.unlock()
    return opened


def test_a_shipper_leaves_what_goes_to_another_data_folder(settings, endpoint):
    leave(replace(settings, destination="/data/one"))
    with tape_exporter_for(replace(settings, endpoint=endpoint.url, destination="/data/two")) as other:
        other.sink.append(chunk())
        assert other.close(60)
        assert len(endpoint.facts()) == 1
        assert len(pending(settings)) == 1
        report = push(replace(settings, endpoint=endpoint.url, destination="/data/one"))
        assert (report.tally.facts, report.remaining) == (1, [])


def test_a_push_says_what_it_leaves_and_takes_it_on_demand(settings, endpoint):
    leave(replace(settings, destination="/data/one"))
    to = replace(settings, endpoint=endpoint.url, destination="/data/two")
    report = push(to)
    assert (report.tally.facts, report.remaining, report.problem) == (0, [], "")
    assert [one.destination for one in report.elsewhere] == ["/data/one"]
    assert push(to, also=("/data/one",)).tally.facts == 1
    leave(replace(settings, destination="/data/one"))
    assert push(to, everything=True).tally.facts == 1
    assert pending(settings) == []


def test_without_a_data_folder_the_endpoint_is_the_destination(settings, endpoint):
    leave(replace(settings, destination=""))  # its endpoint is away
    [left] = pending(settings)
    assert left.destination == address(settings)
    elsewhere = replace(settings, endpoint=endpoint.url)
    assert push(elsewhere).tally.facts == 0
    assert push(elsewhere, also=(left.destination,)).tally.facts == 1


def test_who_failed_to_deliver_leaves_the_destination_as_it_was(settings, endpoint):
    leave(replace(settings, destination="/data/one"))
    assert push(replace(settings, destination="/data/one"), attempts=1).problem
    to = replace(settings, endpoint=endpoint.url)
    assert push(replace(to, destination="/data/two")).tally.facts == 0
    assert push(replace(to, destination="/data/one")).tally.facts == 1


def test_a_spool_of_an_earlier_version_names_no_destination_and_goes_to_any(settings, endpoint):
    opened = leave(settings)
    folders = SpoolFolders.of(settings)
    (left,) = folders.instances()
    for folder in {folders.active_home(left), folders.home(left)}:
        if folder.is_dir():
            (folder / OWNER).write_text("1234\n")
    assert opened.sink.instance != left
    assert push(replace(settings, endpoint=endpoint.url, destination="/data/two")).tally.facts == 1


def test_a_tape_waits_where_another_receiver_listens_at_the_address(settings, endpoint):
    endpoint.rule = lambda path, body: Reply(421)
    to = replace(settings, endpoint=endpoint.url, destination="/data/one")
    leave(to)
    report = push(to)
    assert (report.tally.facts, len(report.remaining)) == (0, 1)
    assert "421" in report.problem
    endpoint.rule = lambda path, body: Reply()
    assert push(to).tally.facts == 1
