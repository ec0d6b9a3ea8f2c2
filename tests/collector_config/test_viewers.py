"""Jaeger, Grafana and Prometheus over the store: what their files ask for is there, and answered."""

import json
import re
from pathlib import Path

import httpx
import pytest
import yaml
from support.tapes.batches import span_of

from playhead_receiver.api.tempo.traceql import parse
from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch
from playhead_receiver.system.defaults import GRPC_PORT, QUERY_PORT

FOLDER = Path(__file__).parents[2] / "collector-config"
DASHBOARDS = sorted((FOLDER / "grafana/dashboards").glob("*.json"))
SOURCES = FOLDER / "grafana/provisioning/datasources/playhead.yaml"


def board(path):
    return json.loads(path.read_text("utf-8"))


def targets(kind):
    return [
        (path.stem, panel["title"], target)
        for path in DASHBOARDS
        for panel in board(path)["panels"]
        for target in panel["targets"]
        if target["datasource"]["type"] == kind
    ]


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    with Receiver(
        tmp_path_factory.mktemp("data"),
        Configuration(Addresses(http_port=0, grpc_port=None, query_port=0)),
    ) as running:
        chat = {
            "gen_ai__operation__name": "chat",
            "gen_ai__request__model": "gpt-4o",
            "gen_ai__usage__input_tokens": 20_000,
            "gen_ai__usage__output_tokens": 7,
            "gen_ai__usage__cache_read__input_tokens": 5,
        }
        tool = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": "search"}
        more = [span_of(b"v" * 16, 2, parent=1, error=True, error__type="Timeout", **chat)]
        more += [span_of(b"v" * 16, 3, parent=1, error=True, **tool)]
        more += [span_of(b"v" * 16, 4, parent=2, http__response__status_code=503)]
        spans = [span_of(b"v" * 16, 1, name="run", error=True), *more]
        running.store.commit(Batch(spans))
        with httpx.Client(base_url=running.query_endpoint, timeout=60) as client:
            yield client


def test_there_are_three_small_dashboards():
    assert [path.stem for path in DASHBOARDS] == ["latency", "runs", "tokens"]
    for path in DASHBOARDS:
        found = board(path)
        assert 5 <= len(found["panels"]) <= 9
        ids = [panel["id"] for panel in found["panels"]]
        assert len(set(ids)) == len(ids)
    assert len({board(path)["uid"] for path in DASHBOARDS}) == 3


def test_panels_lie_beside_each_other():
    for path in DASHBOARDS:
        taken = set()
        for panel in board(path)["panels"]:
            place = panel["gridPos"]
            assert place["x"] + place["w"] <= 24
            cells = {
                (place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])
            }
            assert not cells & taken, panel["title"]
            taken |= cells


def test_panels_ask_the_sources_that_are_provisioned():
    sources = {one["uid"]: one for one in yaml.safe_load(SOURCES.read_text("utf-8"))["datasources"]}
    used = {
        (one["uid"], one["type"])
        for path in DASHBOARDS
        for panel in board(path)["panels"]
        for one in (panel["datasource"], *(target["datasource"] for target in panel["targets"]))
    }
    assert used == {(uid, one["type"]) for uid, one in sources.items()}
    tempo = sources["playhead"]
    assert tempo["url"].endswith("/tempo")
    assert tempo["jsonData"]["streamingEnabled"] == {"search": False, "metrics": False}
    [provider] = yaml.safe_load((FOLDER / "grafana/provisioning/dashboards/playhead.yaml").read_text())[
        "providers"
    ]
    assert provider["type"] == "file"


@pytest.mark.parametrize(("dashboard", "title", "target"), targets("tempo"))
def test_every_question_in_traceql_is_answered(api, dashboard, title, target):
    query = parse(target["query"])
    window = {"start": "1699999990", "end": "1700000010"}
    path = "/tempo/api/search" if query.metric is None else "/tempo/api/metrics/query_range"
    answer = api.get(path, params={"q": target["query"], **window})
    assert answer.status_code == 200, answer.text
    found = answer.json()
    if query.metric is None:
        assert found["traces"]
        assert target["tableType"] == "traces"
    else:
        assert any(sample["value"] for one in found["series"] for sample in one["samples"])


@pytest.mark.parametrize(("dashboard", "title", "target"), targets("prometheus"))
def test_every_figure_is_one_of_the_receivers(api, dashboard, title, target):
    known = set(re.findall(r"^# TYPE (\S+) ", api.get("/metrics").text, re.MULTILINE))
    asked = set(re.findall(r"playhead_\w+", target["expr"]))
    assert asked
    assert asked <= known


def test_every_alert_is_about_figures_of_the_receivers(api):
    known = set(re.findall(r"^# TYPE (\S+) ", api.get("/metrics").text, re.MULTILINE))
    alerts = yaml.safe_load((FOLDER / "prometheus/alerts.yaml").read_text("utf-8"))
    for rule in alerts["groups"][0]["rules"]:
        asked = set(re.findall(r"playhead_\w+", rule["expr"]))
        assert {name.removesuffix("_bucket") for name in asked} <= known, rule["alert"]


def test_prometheus_asks_where_the_receiver_answers():
    config = yaml.safe_load((FOLDER / "prometheus/prometheus.yml").read_text("utf-8"))
    [job] = config["scrape_configs"]
    assert job["metrics_path"] == "/metrics"
    assert job["static_configs"] == [{"targets": [f"127.0.0.1:{QUERY_PORT}"]}]


def test_jaeger_is_wired_to_the_storage():
    config = yaml.safe_load((FOLDER / "jaeger/jaeger.yaml").read_text("utf-8"))
    extensions = config["extensions"]
    assert set(config["service"]["extensions"]) == set(extensions)
    [(name, backend)] = extensions["jaeger_storage"]["backends"].items()
    assert extensions["jaeger_query"]["storage"] == {"traces": name}
    assert set(backend["grpc"]) == {"endpoint", "timeout", "tls"}
    assert backend["grpc"]["endpoint"].endswith(f":{GRPC_PORT}}}")
    [pipeline] = config["service"]["pipelines"].values()
    assert pipeline == {"receivers": ["nop"], "exporters": ["nop"]}
