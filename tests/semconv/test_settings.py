import pytest

from playhead_core.errors import ConfigurationError
from playhead_core.settings import Settings, resolve


def test_defaults_name_themselves():
    resolved = resolve({})
    assert resolved.settings == Settings()
    assert set(resolved.origins.values()) == {"default"}


def test_the_order_of_sources():
    files = (("pyproject.toml", {"agent": "from-project"}), ("config.toml", {"agent": "from-home"}))
    environ = {"OTEL_SERVICE_NAME": "from-otel"}
    assert resolve({}, files=files[1:]).settings.agent == "from-home"
    assert resolve({}, files=files).settings.agent == "from-project"
    assert resolve(environ, files=files).settings.agent == "from-otel"
    resource = {"OTEL_RESOURCE_ATTRIBUTES": "team=a, service.name = from%20resource,x"}
    resolved = resolve(resource, files=files)
    assert resolved.settings.agent == "from resource"
    assert resolved.origins["agent"] == "environment (OTEL_RESOURCE_ATTRIBUTES)"
    assert resolve(resource | environ, files=files).settings.agent == "from-otel"
    environ["PLAYHEAD_AGENT"] = "from-playhead"
    resolved = resolve(environ, files=files)
    assert resolved.settings.agent == "from-playhead"
    assert resolved.origins["agent"] == "environment (PLAYHEAD_AGENT)"
    resolved = resolve(environ, flags={"agent": "from-flag"}, files=files)
    assert resolved.settings.agent == "from-flag"
    assert resolved.origins["agent"] == "flag"


def test_values_get_their_type():
    settings = resolve({"PLAYHEAD_QUIET": "yes", "PLAYHEAD_SPOOL_BUDGET_BYTES": "4096"}).settings
    assert settings.quiet is True
    assert settings.spool_budget_bytes == 4096


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"PLAYHEAD_QUIET": "perhaps"}, "quiet from environment (PLAYHEAD_QUIET) is 'perhaps'"),
        ({"PLAYHEAD_EXPORT_INTERVAL_MS": "soon"}, "is 'soon', not a whole number"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(environ: dict[str, str], message: str):
    with pytest.raises(ConfigurationError) as caught:
        resolve(environ)
    assert message in caught.value.what


def test_an_unknown_key_names_the_nearest():
    with pytest.raises(ConfigurationError) as caught:
        resolve({}, files=(("pyproject.toml", {"spool-dri": "x"}),))
    assert caught.value.what == "unknown setting spool-dri in pyproject.toml"
    assert caught.value.hint == "did you mean spool-dir?"


def test_a_token_in_a_file_is_refused():
    with pytest.raises(ConfigurationError, match=r"a token does not belong in config\.toml"):
        resolve({}, files=(("config.toml", {"token": "secret"}),))
