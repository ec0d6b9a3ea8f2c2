"""`deploy/compose.yaml`.

No engine runs it here. Checked is that it parses, that what it refers to is there (services, volumes,
configs, files, variables), and that settings, ports and commands are those of the receiver and of the
demonstration. **Not** checked: that the images of others are to be had and understand what they are
told, and that the services find each other.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.commands import VARIABLES

from playhead_cli.demo.provider import Provider
from playhead_receiver.storage.content.object_store import object_url
from playhead_receiver.storage.postgres.address import parse_address
from playhead_receiver.system.defaults import GRPC_PORT, HTTP_PORT, QUERY_PORT

FOLDER = Path(__file__).parents[2] / "deploy"
TEXT = (FOLDER / "compose.yaml").read_text("utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
KEYS = frozenset(
    "build command configs depends_on entrypoint environment healthcheck image network_mode ports "
    "profiles restart volumes".split()
)
OF_VIEWERS = re.compile(r"\$\{(?:env:)?(\w+)")


def test_services_are_made_of_known_keys_and_images_have_a_version():
    assert set(COMPOSE) == {"name", "services", "configs", "volumes"}
    for name, service in SERVICES.items():
        assert set(service) <= KEYS, name
        if "build" in service:
            build = service["build"]
            assert (FOLDER / build["context"] / build["dockerfile"]).exists()
            assert (FOLDER / build["context"]).resolve() == FOLDER.parent
        else:
            assert re.search(r":v?\d", service["image"]), name
    assert {one for service in SERVICES.values() for one in service.get("profiles", ())} == {
        "grafana",
        "jaeger",
    }


def test_what_is_referred_to_is_there_and_what_is_there_is_used():
    volumes, configs = set(), set()
    for name, service in SERVICES.items():
        for other, wanted in service.get("depends_on", {}).items():
            if wanted["condition"] == "service_healthy" and other != "receiver":
                assert "healthcheck" in SERVICES[other], name
            assert other in SERVICES
        kind, _, other = service.get("network_mode", "").partition(":")
        assert not kind or (kind == "service" and other in SERVICES)
        for mount in service.get("volumes", ()):
            source = mount.split(":")[0]
            if source.startswith("."):
                assert (FOLDER / source).exists(), source
            else:
                volumes.add(source)
        configs |= {one["source"] for one in service.get("configs", ())}
    assert volumes == set(COMPOSE["volumes"])
    assert configs == set(COMPOSE["configs"])


def test_every_variable_is_in_the_example_of_an_environment():
    told = set(re.findall(r"^#?(\w+)=", (FOLDER / "example.env").read_text("utf-8"), re.MULTILINE))
    used = set(re.findall(r"(?<!\$)\$\{(\w+)", re.sub(r"^ *#.*$", "", TEXT, flags=re.MULTILINE)))
    assert used == told


def test_nothing_listens_beyond_this_machine():
    for name, service in SERVICES.items():
        for port in service.get("ports", ()):
            assert re.fullmatch(r"127\.0\.0\.1:(\d+):\1", port), name


def test_the_receiver_is_told_what_it_understands():
    receiver = SERVICES["receiver"]
    environment = receiver["environment"]
    assert {name for name in environment if name.startswith("PLAYHEAD_")} <= VARIABLES
    assert parse_address(environment["PLAYHEAD_STORE"]).name == environment["PLAYHEAD_STORE"].replace(
        "playhead@", ""
    )
    assert object_url(environment["PLAYHEAD_BLOBS"])
    assert {port.split(":")[-1] for port in receiver["ports"]} == {
        str(port) for port in (GRPC_PORT, HTTP_PORT, QUERY_PORT)
    }


def test_bodies_go_into_the_bucket_that_is_there():
    bucket = SERVICES["receiver"]["environment"]["PLAYHEAD_BLOBS"].split("/")[2]
    objects = SERVICES["objects"]
    root = objects["command"][-1]
    assert [mount.split(":")[1] for mount in objects["volumes"]] == [f"{root}/{bucket}"]
    (name, secret) = (objects["environment"][one] for one in ("ROOT_ACCESS_KEY", "ROOT_SECRET_KEY"))
    asked = SERVICES["receiver"]["environment"]
    assert (asked["AWS_ACCESS_KEY_ID"], asked["AWS_SECRET_ACCESS_KEY"]) == (name, secret)


def test_the_database_is_the_one_that_is_made():
    made = SERVICES["postgres"]["environment"]
    asked = SERVICES["receiver"]["environment"]
    assert asked["PLAYHEAD_STORE"] == (
        f"postgresql://{made['POSTGRES_USER']}@postgres/{made['POSTGRES_DB']}"
    )
    assert asked["PGPASSWORD"] == made["POSTGRES_PASSWORD"]


def test_the_agent_finds_the_provider_and_the_receiver():
    provider, agent = SERVICES["provider"], SERVICES["agent"]
    assert provider["entrypoint"] == ["python", "-m", "playhead_cli.demo"]
    (port,) = provider["command"]
    with Provider() as running:
        needed = {name: value.replace(running.url, "URL") for name, value in running.environment.items()}
    given = {name: value for name, value in agent["environment"].items() if name in needed}
    assert set(given) == set(needed)
    for name, value in needed.items():
        if "URL" in value:
            assert given[name] == value.replace("URL", f"http://127.0.0.1:{port}")
    ours = {name for name in agent["environment"] if name.startswith("PLAYHEAD_")}
    assert ours <= VARIABLES
    assert agent["environment"]["PLAYHEAD_ENDPOINT"] == f"http://receiver:{HTTP_PORT}"


@pytest.mark.parametrize(
    ("service", "file"),
    [
        ("grafana", "grafana/provisioning/datasources/playhead.yaml"),
        ("grafana", "grafana/provisioning/dashboards/playhead.yaml"),
        ("jaeger", "jaeger/jaeger.yaml"),
    ],
)
def test_viewers_get_the_variables_that_their_files_name(service: str, file: str):
    named = set(OF_VIEWERS.findall((FOLDER.parent / "collector-config" / file).read_text("utf-8")))
    assert named and named <= set(SERVICES[service]["environment"])


def test_prometheus_asks_what_it_asks_elsewhere():
    path = FOLDER.parent / "collector-config" / "prometheus" / "prometheus.yml"
    (elsewhere,) = yaml.safe_load(path.read_text("utf-8"))["scrape_configs"]
    (job,) = yaml.safe_load(COMPOSE["configs"]["prometheus"]["content"])["scrape_configs"]
    assert (job["job_name"], job["metrics_path"]) == (elsewhere["job_name"], elsewhere["metrics_path"])
    assert job["static_configs"] == [{"targets": [f"receiver:{QUERY_PORT}"]}]


def test_jaeger_gets_a_token_for_the_storage_that_it_has():
    path = FOLDER.parent / "collector-config" / "jaeger" / "jaeger.yaml"
    whole = yaml.safe_load(path.read_text("utf-8"))
    more = yaml.safe_load(COMPOSE["configs"]["jaeger-token"]["content"].replace("$$", "$"))
    (name,) = more["extensions"]["jaeger_storage"]["backends"]
    assert name in whole["extensions"]["jaeger_storage"]["backends"]
    targets = [one["target"] for one in SERVICES["jaeger"]["configs"]]
    targets += [mount.split(":")[1] for mount in SERVICES["jaeger"]["volumes"]]
    assert set(targets) == {one for one in SERVICES["jaeger"]["command"] if one.endswith(".yaml")}
