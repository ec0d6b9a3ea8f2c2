"""A file system that fails under load, by an error or a power cut: what was acknowledged is on it."""

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.outside.senders import Sender, Standing, all_are_refused, more, nothing_is_missing, sending
from support.volumes import Journalled, journalled, may_mount

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not may_mount(), reason="needs root and loop devices"),
]
PUT = """
import sys
from playhead_exporter.delivery import Signal
from playhead_receiver.forward.delivery_state import Outbox
queue = Outbox(sys.argv[1], "http://away")
for number in range(int(sys.argv[2]), 10000):
    queue.put(Signal.METRICS, b"%d" % number)
    print(number, flush=True)
"""
LOOK = """
import sys
from playhead_receiver.forward.delivery_state import Outbox
print(*(body.decode() for _, body in Outbox(sys.argv[1], "http://away").oldest(1 << 30)))
"""


@pytest.mark.parametrize("failing", [Journalled.fail, Journalled.cut])
def test_nothing_acknowledged_is_lost(tmp_path: Path, failing: Callable[[Journalled], None]):
    chance = random.Random(1)
    data_dir = tmp_path / "disk"
    senders = [Sender(number) for number in range(1, 5)]
    with journalled(data_dir, tmp_path / "image", size_mib=256) as disk:
        for _ in range(40):
            standing = Standing(data_dir, disk.within)
            with sending(senders, standing):
                more(senders, chance.randrange(4, 60))
                failing(disk)
                all_are_refused(senders)
                standing.kill()
            disk.mend()
            nothing_is_missing(data_dir, senders, disk.within)


@pytest.mark.parametrize("failing", [Journalled.fail, Journalled.cut])
def test_what_waits_for_a_destination_is_not(tmp_path: Path, failing: Callable[[Journalled], None]):
    data_dir, kept = tmp_path / "disk", 0
    with journalled(data_dir, tmp_path / "image", size_mib=64) as disk:
        for _ in range(20):
            python = [*disk.within, sys.executable, "-c"]
            with subprocess.Popen(
                [*python, PUT, data_dir, str(kept)],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            ) as process:
                assert process.stdout is not None
                for _ in range(10):
                    kept = int(process.stdout.readline()) + 1
                failing(disk)
                kept += len(process.stdout.readlines())
            assert process.returncode == 1
            disk.mend()
            found = subprocess.check_output([*python, LOOK, data_dir], text=True)
            assert {*map(str, range(kept))} <= {*found.split()}
