"""betamax records requests, then answers them with the server gone."""

import sys
import tempfile

import requests
from betamax import Betamax
from served import serve

server, url = serve()
with tempfile.TemporaryDirectory() as folder:
    for record in ("once", "none"):
        session = requests.Session()
        with Betamax(session, cassette_library_dir=folder).use_cassette("one", record=record):
            print([session.get(f"{url}/{number}").text for number in range(3)])
        if record == "once":
            server.shutdown()
            server.server_close()
sys.exit(3)
