"""Delivery goes to the endpoint, whatever a test double has put in the place of connections."""

import http.client

from support.servers.scripted import ScriptedServer, json_reply

from playhead_exporter.delivery import Endpoint
from playhead_exporter.shipping.endpoint_answers import About
from playhead_exporter.shipping.http import HttpTransport


class Double:
    """As vcrpy's connections: it would put what is delivered on a cassette, or answer from one."""

    def __init__(self, *_, **options):
        raise AssertionError("delivery went through a double")


def test_delivery_passes_doubles_by(monkeypatch):
    with ScriptedServer() as server:
        server.script([json_reply({"playhead": "1"})])
        transport = HttpTransport(Endpoint.parse(server.url, "http/protobuf"), "")
        monkeypatch.setattr(http.client, "HTTPConnection", Double)
        assert transport.about(10) == About(True)
        transport.close()
