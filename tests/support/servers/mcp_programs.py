"""The path of the MCP server, and how it is served over HTTP."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.servers import ports

SERVER = Path(__file__).parent / "mcp_server.py"


@contextmanager
def over_http() -> Iterator[str]:
    port = ports.free()
    serving = subprocess.Popen(
        [sys.executable, str(SERVER), str(port)], stderr=subprocess.PIPE, text=True
    )
    try:
        assert serving.stderr is not None
        assert any("running on" in line for line in serving.stderr), "the server does not start"
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        serving.kill()
        serving.communicate()
