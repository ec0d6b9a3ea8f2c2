"""TLS: who is let in, and how our own senders show who they are."""

import ssl
from pathlib import Path

import grpc
import httpx
import pytest
import trustme
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from support.starting.running import until
from support.tapes.batches import span_of

from playhead_core.errors import ConfigurationError
from playhead_core.settings import Settings
from playhead_exporter.delivery import Signal
from playhead_exporter.shipping.endpoint_answers import Accepted, TryLater
from playhead_exporter.shipping.transports import probe, transport_opener
from playhead_exporter.span_exporter import PlayheadSpanExporter
from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch
from playhead_receiver.system.listening import Tls

PROTOBUF = {"content-type": "application/x-protobuf"}
TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


def body_of(trace_id: bytes) -> bytes:
    entry = ResourceSpans.FromString(span_of(trace_id, 1, service="agent").otlp)
    return ExportTraceServiceRequest(resource_spans=[entry]).SerializeToString()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tls, Path, Path]:
    """Of the server, of who has signed it, and of a client."""
    folder = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    server, client = authority.issue_cert("127.0.0.1", "localhost"), authority.issue_cert("me@x.org")
    paths = {name: folder / f"{name}.pem" for name in ("ca", "cert", "key", "client")}
    authority.cert_pem.write_to_path(paths["ca"])
    server.cert_chain_pems[0].write_to_path(paths["cert"])
    server.private_key_pem.write_to_path(paths["key"])
    client.private_key_and_cert_chain_pem.write_to_path(paths["client"])
    return Tls(str(paths["cert"]), str(paths["key"])), paths["ca"], paths["client"]


def test_everything_over_tls(tmp_path: Path, certificates: tuple[Tls, Path, Path]):
    tls, ca, _ = certificates
    context = ssl.create_default_context(cafile=str(ca))
    with (
        Receiver(
            tmp_path, Configuration(Addresses(http_port=0, grpc_port=0, query_port=0, tls=tls))
        ) as receiver,
        httpx.Client(verify=context) as client,
    ):
        assert receiver.http_endpoint.startswith("https://")
        body = body_of(b"t" * 16)
        url = f"{receiver.http_endpoint}/v1/traces"
        assert client.post(url, content=body, headers=PROTOBUF).status_code == 200
        credentials = grpc.ssl_channel_credentials(ca.read_bytes())
        with grpc.secure_channel(receiver.grpc_endpoint, credentials) as channel:
            channel.unary_unary(TRACES)(body_of(b"u" * 16), timeout=60)
        assert len(client.get(f"{receiver.query_endpoint}/v1/runs").json()["runs"]) == 2
        with pytest.raises(httpx.HTTPError):
            httpx.get(receiver.query_endpoint.replace("https", "http") + "/health")


def test_those_without_a_certificate_are_not_let_in(
    tmp_path: Path, certificates: tuple[Tls, Path, Path]
):
    tls, ca, mine = certificates
    mutual = Tls(tls.certificate, tls.key, str(ca))
    with Receiver(
        tmp_path, Configuration(Addresses(http_port=0, grpc_port=0, query_port=0, tls=mutual))
    ) as receiver:
        context = ssl.create_default_context(cafile=str(ca))
        for endpoint in (receiver.http_endpoint, receiver.query_endpoint):
            with httpx.Client(verify=context) as client, pytest.raises(httpx.HTTPError):
                client.get(f"{endpoint}/health")
        credentials = grpc.ssl_channel_credentials(ca.read_bytes())
        with (
            grpc.secure_channel(receiver.grpc_endpoint, credentials) as channel,
            pytest.raises(grpc.RpcError),
        ):
            channel.unary_unary(TRACES)(b"", timeout=5)
        context.load_cert_chain(mine)
        with httpx.Client(verify=context) as client:
            for endpoint in (receiver.http_endpoint, receiver.query_endpoint):
                assert client.get(f"{endpoint}/health").status_code == 200
        pem = mine.read_bytes()
        credentials = grpc.ssl_channel_credentials(ca.read_bytes(), pem, pem)
        with grpc.secure_channel(receiver.grpc_endpoint, credentials) as channel:
            channel.unary_unary(TRACES)(b"", timeout=60)


def test_tls_that_cannot_be_used_is_said_at_once(tmp_path: Path, certificates: tuple[Tls, Path, Path]):
    tls, ca, _ = certificates
    receiver = Receiver(
        tmp_path, Configuration(Addresses(http_port=0, grpc_port=None, tls=Tls(str(ca), tls.key)))
    )
    with pytest.raises(ConfigurationError, match="cannot be used"):
        receiver.start()


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_an_agent_shows_its_certificate(
    tmp_path: Path, certificates: tuple[Tls, Path, Path], protocol: str
):
    tls, ca, mine = certificates
    mutual = Tls(tls.certificate, tls.key, str(ca))
    with Receiver(tmp_path, Configuration(Addresses(http_port=0, grpc_port=0, tls=mutual))) as receiver:
        http = protocol == "http/protobuf"
        endpoint = receiver.http_endpoint if http else f"https://{receiver.grpc_endpoint}"
        stranger = Settings(endpoint=endpoint, protocol=protocol, certificate=str(ca))
        known = Settings(
            endpoint=endpoint, protocol=protocol, certificate=str(ca), client_certificate=str(mine)
        )
        answers: list[object] = []
        for settings in (stranger, known):
            transport = transport_opener(settings)[1]()
            answers.append(transport.send(Signal.TRACES, body_of(b"t" * 16), 60))
            transport.close()
        assert isinstance(answers[0], TryLater)
        assert answers[1] == Accepted(watched=not http)  # gRPC has no such header
        assert len(list(receiver.store.spans(b"t" * 16))) == 1
        if http:
            assert (type(probe(stranger)), type(probe(known))) == (TryLater, Accepted)


def test_the_span_exporter_takes_the_standard_variables(
    tmp_path: Path, certificates: tuple[Tls, Path, Path]
):
    tls, ca, mine = certificates
    with Receiver(
        tmp_path,
        Configuration(
            Addresses(http_port=0, grpc_port=None, tls=Tls(tls.certificate, tls.key, str(ca)))
        ),
    ) as receiver:
        exporter = PlayheadSpanExporter(
            {
                "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.http_endpoint,
                "OTEL_EXPORTER_OTLP_TIMEOUT": "60",
                "OTEL_EXPORTER_OTLP_CERTIFICATE": str(ca),
                "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": str(mine),
                "OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY": str(mine),
            }
        )
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        provider.get_tracer("t").start_span("s").end()
        provider.shutdown()
        assert receiver.intake.counted.spans == 1


def test_a_destination_may_want_a_certificate(tmp_path: Path, certificates: tuple[Tls, Path, Path]):
    tls, ca, mine = certificates
    mutual = Tls(tls.certificate, tls.key, str(ca))
    with Receiver(
        tmp_path / "there", Configuration(Addresses(http_port=0, grpc_port=0, tls=mutual))
    ) as there:
        ways = (f"{there.http_endpoint}", f"grpcs://{there.grpc_endpoint}")
        forward = tuple(f"{way} ca={ca} cert={mine}" for way in ways)
        here = Configuration(Addresses(http_port=0, grpc_port=None), forward=forward)
        with Receiver(tmp_path / "here", here) as here:
            here.store.commit(Batch([span_of(b"t" * 16, 1)]))
            until(lambda: there.intake.counted.spans == 2, "sent both ways")
    with pytest.raises(ConfigurationError, match="none cannot be read, for https://tempo"):
        Receiver(
            tmp_path / "x",
            Configuration(
                Addresses(http_port=0, grpc_port=None),
                forward=(f"https://tempo ca={ca} key={tmp_path}/none",),
            ),
        ).start()
