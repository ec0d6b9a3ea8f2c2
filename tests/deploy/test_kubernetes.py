"""The manifests of `deploy/kubernetes/`.

No cluster takes them here (`kubernetes-validate` held them against the schemas of Kubernetes 1.36, by
hand). Checked is that they parse, that names and labels that refer to each other agree, and that paths,
ports, settings and commands are those of the receiver. **Not** checked: admission, storage classes, and
that a pod starts.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.commands import VARIABLES, refused

from playhead_receiver.storage.retention import policy_of
from playhead_receiver.system.defaults import GRPC_PORT, HTTP_PORT, QUERY_PORT

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml"))
OBJECTS: dict[str, dict[str, Any]] = {
    f"{path.stem} {one['kind']}": one
    for path in FILES
    for one in yaml.safe_load_all(path.read_text("utf-8"))
}
VERSIONS = {"Service": "v1", "StatefulSet": "apps/v1", "Deployment": "apps/v1"}


def pods() -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Name, object, and the pod it makes."""
    return [
        (name, one, one["spec"]["template"])
        for name, one in OBJECTS.items()
        if "template" in one["spec"]
    ]


def container_of(pod: dict[str, Any]) -> dict[str, Any]:
    (container,) = pod["spec"]["containers"]
    return container


def test_there_are_a_receiver_and_an_agent():
    assert list(OBJECTS) == ["agent Deployment", "receiver Service", "receiver StatefulSet"]
    for one in OBJECTS.values():
        assert one["apiVersion"] == VERSIONS[one["kind"]]


@pytest.mark.parametrize(
    ("name", "owner", "pod"), pods(), ids=lambda one: one if isinstance(one, str) else ""
)
def test_what_is_referred_to_is_there(name: str, owner: dict[str, Any], pod: dict[str, Any]):
    labels = pod["metadata"]["labels"]
    assert owner["spec"]["selector"]["matchLabels"].items() <= labels.items()
    claims = [one["metadata"]["name"] for one in owner["spec"].get("volumeClaimTemplates", ())]
    volumes = {*claims, *(one["name"] for one in pod["spec"].get("volumes", ()))}
    assert volumes == {one["name"] for one in container_of(pod)["volumeMounts"]}


@pytest.mark.parametrize(
    ("name", "owner", "pod"), pods(), ids=lambda one: one if isinstance(one, str) else ""
)
def test_variables_are_settings_and_secrets_are_made_as_told(
    name: str, owner: dict[str, Any], pod: dict[str, Any]
):
    given = container_of(pod)["env"]
    ours = {one["name"] for one in given if one["name"].startswith("PLAYHEAD_")}
    assert ours and ours <= VARIABLES
    text = (ROOT / "deploy" / "kubernetes" / f"{name.split()[0]}.yaml").read_text("utf-8")
    made = set(re.findall(r"create secret generic ([\w-]+) --from-literal=(\w+)=", text))
    assert made == {
        (one["valueFrom"]["secretKeyRef"]["name"], one["valueFrom"]["secretKeyRef"]["key"])
        for one in given
        if "valueFrom" in one
    }


def test_the_service_leads_to_the_receivers_ports():
    service, receiver = OBJECTS["receiver Service"], OBJECTS["receiver StatefulSet"]
    pod = receiver["spec"]["template"]
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert receiver["spec"]["serviceName"] == service["metadata"]["name"]
    ports = {one["name"]: one["containerPort"] for one in container_of(pod)["ports"]}
    assert set(ports.values()) == {GRPC_PORT, HTTP_PORT, QUERY_PORT}
    for one in service["spec"]["ports"]:
        assert one["port"] == ports[one["targetPort"]]


def test_probes_ask_what_the_query_api_answers_to_everybody():
    container = container_of(OBJECTS["receiver StatefulSet"]["spec"]["template"])
    ports = {one["name"]: one["containerPort"] for one in container["ports"]}
    asked = {kind: container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "readiness", "liveness")}
    assert {one["port"] for one in asked.values()} == {"query"}
    assert ports["query"] == QUERY_PORT
    paths = {kind: one["path"] for kind, one in asked.items()}
    assert paths == {"startup": "/health", "readiness": "/ready", "liveness": "/health"}


def test_the_receiver_is_the_image_of_this_version_with_a_command_that_is_accepted():
    pod = OBJECTS["receiver StatefulSet"]["spec"]["template"]
    container = container_of(pod)
    version = tomllib.loads((ROOT / "cli/pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert container["image"] == f"playhead:{version}"
    assert refused(["playhead", *container["args"]]) == ""
    (user,) = re.findall(r"^USER (\d+)", (ROOT / "deploy/receiver.Dockerfile").read_text("utf-8"), re.M)
    assert pod["spec"]["securityContext"]["runAsUser"] == int(user)
    values = {one["name"]: one.get("value") for one in container["env"]}
    policy_of(values["PLAYHEAD_RETENTION"])
    (data,) = [one["mountPath"] for one in container["volumeMounts"] if one["name"] == "data"]
    assert f"PLAYHEAD_DATA_DIR={data}" in (ROOT / "deploy/receiver.Dockerfile").read_text("utf-8")


def test_the_agent_sends_to_the_service():
    container = container_of(OBJECTS["agent Deployment"]["spec"]["template"])
    values = {one["name"]: one.get("value") for one in container["env"]}
    name = OBJECTS["receiver Service"]["metadata"]["name"]
    assert values["PLAYHEAD_ENDPOINT"] == f"http://{name}:{HTTP_PORT}"
    assert container["command"][0] == "opentelemetry-instrument"
    mounts = [one["mountPath"] for one in container["volumeMounts"]]
    assert values["PLAYHEAD_SPOOL_DIR"] in mounts
