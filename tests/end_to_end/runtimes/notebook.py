"""A notebook, executed as nbconvert does: in a kernel that is a process of its own."""

import sys

import nbclient
import nbformat

CELLS = ("import asyncio\nawait asyncio.sleep(0.01)\nx = 1\nprint('cell', x)", "x + 1")

book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
nbclient.NotebookClient(book, timeout=60, kernel_name="python3").execute()
shown = [output for cell in book.cells for output in cell.outputs if output.get("name") != "stderr"]
print([output.get("text", output.get("data")) for output in shown])
sys.exit(3)
