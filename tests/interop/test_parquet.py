"""Parquet files are read by Apache Arrow as they were written."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from random import Random

import pytest
from support.outside.interop import OTHERS

from playhead_analysis.sql.parquet import ROWS, parquet_of
from playhead_analysis.sql.tables import Kind, Row

COLUMNS: list[tuple[str, Kind]] = [("name", "text"), ("count", "integer"), ("share", "real")]
READER = """
import json, sys
import pyarrow.parquet
table = pyarrow.parquet.read_table(sys.argv[1])
rows = list(zip(*(column.to_pylist() for column in table.columns)))
print(json.dumps([table.schema.names, [str(one) for one in table.schema.types], rows]))
"""


@pytest.mark.acceptance
@pytest.mark.parametrize("count", [0, 1, 2 * ROWS + 1])
def test_arrow_reads_what_was_written(tmp_path: Path, count: int):
    rng = Random(count)
    rows: list[Row] = [
        (
            rng.choice([None, "", "é", "請" * 9]),
            rng.choice([None, 2**40, 0, -3]),
            rng.choice([None, 1.5]),
        )
        for _ in range(count)
    ]
    more: list[tuple[str, Kind]] = [(f"column {number}", "text") for number in range(20)]
    file = tmp_path / "rows.parquet"
    wide = ((*row, *("x",) * len(more)) for row in rows)
    file.write_bytes(b"".join(parquet_of([*COLUMNS, *more], wide)))
    words = [OTHERS / "bin" / "python", "-c", READER, file]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    names, types, found = json.loads(done.stdout)
    assert names == [name for name, _ in (*COLUMNS, *more)]
    assert types[:3] == ["string", "int64", "double"]
    assert [tuple(row[:3]) for row in found] == rows
