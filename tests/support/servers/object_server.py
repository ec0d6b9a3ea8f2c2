"""A real S3 server in a process on loopback. It can be switched to return errors.

Run as a program, this module is that process: it prints its port, and serves until it is killed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any
from urllib.request import Request, urlopen

BUCKET = "traces"
ACCESS = {
    "AWS_ACCESS_KEY_ID": "somebody",
    "AWS_SECRET_ACCESS_KEY": "of the tests",
    "AWS_REGION": "us-east-1",
    "NO_PROXY": "127.0.0.1",
}


class ObjectServer:
    """An S3 server with one bucket; a context manager that sets the environment of clients."""

    def __init__(self) -> None:
        self._before: dict[str, str | None] = {}

    def __enter__(self) -> ObjectServer:
        self._process = subprocess.Popen([sys.executable, __file__], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.endpoint = f"http://127.0.0.1:{int(self._process.stdout.readline())}"
        self._ask("PUT", BUCKET)
        self._before = {name: os.environ.get(name) for name in self.environment}
        os.environ.update(self.environment)
        return self

    def __exit__(self, *_: object) -> None:
        for name, value in self._before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        self._process.kill()
        self._process.communicate()

    @property
    def environment(self) -> dict[str, str]:
        """Variables that a client needs."""
        return {**ACCESS, "AWS_ENDPOINT_URL": self.endpoint}

    def url(self, prefix: str) -> str:
        """URL of a prefix in the bucket."""
        return f"s3://{BUCKET}/{prefix}"

    def put(self, url: str, data: bytes) -> None:
        """Put an object at an ``s3://`` URL."""
        self._ask("PUT", url.removeprefix("s3://"), data)

    def fail(self, fails: bool = True) -> None:
        """Answer 503 to all requests from now on; or stop doing so."""
        self._ask("POST", "-/fail" if fails else "-/work")

    def _ask(self, method: str, path: str, data: bytes | None = None) -> None:
        headers = {"content-type": "application/octet-stream"}
        urlopen(Request(f"{self.endpoint}/{path}", data, headers, method=method), timeout=60).close()


def main() -> None:
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    serve = DomainDispatcherApplication(create_backend_app)
    fails = False

    def app(environ: Any, start_response: Any) -> Any:
        nonlocal fails
        if environ["PATH_INFO"] in ("/-/fail", "/-/work"):
            fails = environ["PATH_INFO"] == "/-/fail"
            start_response("204 No Content", [])
            return [b""]
        if fails:
            start_response("503 Service Unavailable", [("Content-Length", "0")])
            return [b""]
        return serve(environ, start_response)

    class Quiet(WSGIRequestHandler):
        def log(self, type: str, message: str, *args: Any) -> None: ...

    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
