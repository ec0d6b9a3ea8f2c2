"""Which requests are not recorded, by URL."""

from __future__ import annotations

from typing import Any

import django.core.handlers.wsgi
import fastapi
import flask
import pytest
import starlette.applications

from playhead_core.errors import ConfigurationError
from playhead_core.settings import resolve
from playhead_instrumentation.libraries.inbound.excluded import pattern_of

AT = "http://example.org:8000"


def excluded(app: Any, setting: str, url: str) -> bool:
    pattern = pattern_of(app, setting)
    return pattern is not None and pattern.search(url) is not None


@pytest.mark.parametrize(
    "path",
    ["/health", "/healthz", "/ready", "/readyz", "/livez", "/metrics", "/favicon.ico", "/health/"],
)
def test_health_checks_are_excluded_by_default(path: str):
    assert excluded(object(), "", AT + path)
    assert not excluded(object(), "none", AT + path)
    assert not excluded(object(), "/other", AT + path)


@pytest.mark.parametrize("path", ["/", "/healthy", "/api/health", "/metrics/1", "/chat", "/favicon_ico"])
def test_other_requests_are_not(path: str):
    assert not excluded(object(), "", AT + path)
    assert not excluded(object(), "", f"http://health{path}")


class OwnFlask(flask.Flask):
    pass


@pytest.mark.parametrize(
    ("name", "app"),
    [
        ("FASTAPI", fastapi.FastAPI()),
        ("STARLETTE", starlette.applications.Starlette()),
        ("FLASK", flask.Flask("x")),
        ("FLASK", OwnFlask("x")),
        ("DJANGO", django.core.handlers.wsgi.WSGIHandler.__new__(django.core.handlers.wsgi.WSGIHandler)),
    ],
)
def test_a_framework_has_its_own_variable(monkeypatch: pytest.MonkeyPatch, name: str, app: Any):
    monkeypatch.setenv(f"OTEL_PYTHON_{name}_EXCLUDED_URLS", "/inside/.*, out$")
    assert excluded(app, "/setting", f"{AT}/inside/x") and excluded(app, "/setting", f"{AT}/out")
    assert not excluded(app, "/setting", f"{AT}/setting") and not excluded(app, "", f"{AT}/health")
    assert excluded(object(), "/setting", f"{AT}/setting")


def test_a_list_that_is_none_stops_the_recording():
    with pytest.raises(ConfigurationError, match="not a list of regular expressions") as caught:
        resolve({"OTEL_PYTHON_EXCLUDED_URLS": "/health,("})
    assert "OTEL_PYTHON_EXCLUDED_URLS" in caught.value.what


def test_a_variable_that_is_no_pattern_is_told_and_the_setting_counts(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("OTEL_PYTHON_FLASK_EXCLUDED_URLS", "/(")
    assert excluded(flask.Flask("x"), "/setting", f"{AT}/setting")
    assert (
        "OTEL_PYTHON_FLASK_EXCLUDED_URLS is not a list of regular expressions" in capfd.readouterr().err
    )
