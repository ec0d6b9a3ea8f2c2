"""A cell of IPython that waits."""

import sys

from IPython import start_ipython

CELL = "import asyncio\nawait asyncio.sleep(0.01)\nprint('from a cell')"

start_ipython(argv=["--quick", "--no-banner", "--colors=NoColor", "-c", CELL])
print("after it")
sys.exit(3)
