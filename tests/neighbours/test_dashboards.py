"""A real Prometheus scrapes a receiver: each panel's query is answered, each alert is evaluated."""

import subprocess
from collections.abc import Generator
from typing import Any

import httpx
import pytest
import yaml
from collector_config.test_viewers import targets
from neighbours.programs import PROGRAMS
from neighbours.running import CONFIGS, address, answers
from support.servers import ports
from support.starting.running import until

from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver

FOLDER = CONFIGS / "prometheus"


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Generator[httpx.Client]:
    """The API of a Prometheus with the shipped files, which asks a receiver more often."""
    folder = tmp_path_factory.mktemp("prometheus")
    addresses = Addresses(http_port=0, grpc_port=None, query_port=0)
    with Receiver(folder / "data", Configuration(addresses, forward=(ports.nobody(),))) as running:
        config = yaml.safe_load((FOLDER / "prometheus.yml").read_text("utf-8"))
        [job] = config["scrape_configs"]
        job["static_configs"] = [{"targets": [running.query_endpoint.removeprefix("http://")]}]
        # An answer may take as long as the interval, on a busy machine, too.
        often = {"scrape_interval": "5s", "scrape_timeout": "5s", "evaluation_interval": "1s"}
        config["global"] |= often
        config["rule_files"] = [str(FOLDER / one) for one in config["rule_files"]]
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        listens = address()
        words = [PROGRAMS["prometheus"].path, f"--config.file={folder / 'prometheus.yml'}"]
        words += [f"--storage.tsdb.path={folder / 'tsdb'}", f"--web.listen-address={listens}"]
        with open(folder / "prometheus.log", "w") as log:
            process = subprocess.Popen(words, stdout=log, stderr=log, cwd=folder)
        try:
            until(lambda: process.poll() is not None or answers(listens, "/-/ready"), "it is ready")
            assert process.poll() is None, (folder / "prometheus.log").read_text("utf-8")
            with httpx.Client(base_url=f"http://{listens}/api/v1", timeout=60) as api:
                yield api
        finally:
            process.kill()
            process.wait()


def found(api: httpx.Client, query: str) -> list[Any]:
    answer = api.post("/query", data={"query": query})
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]["result"]


@pytest.mark.parametrize(("dashboard", "title", "target"), targets("prometheus"))
def test_the_query_of_a_panel_has_an_answer(
    prometheus: httpx.Client, dashboard: str, title: str, target: dict[str, Any]
):
    [series] = until(lambda: found(prometheus, target["expr"]), f"{title} has figures", 120)
    assert float(series["value"][1]) >= 0
    assert series["metric"]["job"]


def test_each_alert_is_evaluated(prometheus: httpx.Client):
    shipped = yaml.safe_load((FOLDER / "alerts.yaml").read_text("utf-8"))
    names = {rule["alert"] for group in shipped["groups"] for rule in group["rules"]}

    def rules() -> list[dict[str, Any]]:
        groups = prometheus.get("/rules").json()["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]

    until(lambda: all(rule["health"] != "unknown" for rule in rules()), "the rules are evaluated", 120)
    assert {rule["name"]: rule["health"] for rule in rules()} == dict.fromkeys(names, "ok")
