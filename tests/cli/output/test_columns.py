"""Columns of `stats` and `show` if names contain characters that are two columns wide."""

from __future__ import annotations

from rich.cells import cell_len
from support.starting.cli import CommandLine, refund, store_run
from support.tapes.handmade import HandMade


def place_of(line: str, word: str) -> int:
    """The place of a terminal at which a word begins."""
    return cell_len(line[: line.index(word)])


def test_names_in_wide_letters_keep_columns_aligned(playhead: CommandLine):
    store_run(playhead.data_dir, refund(bytes([1]) * 16, bytes([1]) * 16))
    made = HandMade(b"b" * 16, b"c" * 16).start(**{"playhead.run.agent": "退款助手助手"})
    made.tool("查询订单", "{}")
    made.tool("search", "{}")
    store_run(playhead.data_dir, made.exit(0))
    head, *agents = playhead("stats").lines
    assert {place_of(line, " 1 ") for line in agents[:2]} == {place_of(head, "RUNS") - 1}
    steps = [line for line in playhead("show", made.trace_id.hex()).lines if "execute_tool" in line]
    assert len({place_of(line, "200ms") for line in steps}) == 1 and len(steps) == 2
