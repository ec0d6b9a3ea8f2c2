"""All settings of playhead and the resolution of their values.

Flag > code > ``PLAYHEAD_*`` > ``OTEL_*`` > nearest ``pyproject.toml`` ``[tool.playhead]`` >
``~/.config/playhead/config.toml`` > default. This module does no I/O: the caller passes
the environment and the tables of the files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from playhead_core.boundaries import DEFAULT, LEVELS, Level, parse
from playhead_core.errors import ConfigurationError, nearest

RECORDED_BY = "PLAYHEAD_RECORDED_BY"
"""Variable of all processes of one `playhead record`: a token that identifies their recordings."""

RECORDED_RUNS = "PLAYHEAD_RECORDED_RUNS"
"""Another one: a file to which each process adds a JSON line with its run."""


class Description(NamedTuple):
    """Description of a setting."""

    doc: str
    otel: str
    """Variable of OpenTelemetry with the same meaning; empty: none."""
    choices: tuple[str, ...]
    """Its values; empty: any."""


_described: list[Description] = []


def _setting(default: Any, doc: str, otel: str = "", choices: tuple[str, ...] = ()) -> Any:
    _described.append(Description(doc, otel, choices))
    return default


class Settings(msgspec.Struct, frozen=True):
    """The settings of one process. Field ``spool_dir`` is ``PLAYHEAD_SPOOL_DIR`` and ``spool-dir``."""

    endpoint: str = _setting(
        "http://127.0.0.1:4318", "Address for tape and spans: a receiver, or a Collector set up for it."
    )
    protocol: str = _setting("http/protobuf", "http/protobuf or grpc.")
    endpoint_kind: str = _setting(
        "auto", "auto: ask the endpoint; playhead; or other: it gets whole spans."
    )
    destination: str = _setting(
        "",
        "Stable name of the endpoint, if its address changes. Undelivered facts go to the same"
        " destination only. `playhead record` sets it to its data folder. Default: the endpoint.",
    )
    token: str = _setting("", "Bearer token for the endpoint. From the environment only.")
    certificate: str = _setting(
        "", "CA certificate file for the endpoint.", "OTEL_EXPORTER_OTLP_CERTIFICATE"
    )
    client_certificate: str = _setting(
        "",
        "Client certificate file for the endpoint, if it requires one.",
        "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
    )
    client_key: str = _setting(
        "",
        "Private key of the client certificate; may be in the same file.",
        "OTEL_EXPORTER_OTLP_CLIENT_KEY",
    )
    spool_dir: str = _setting("", "Spool folder. Default: the user's state folder, playhead/spool.")
    spool_budget_bytes: int = _setting(1 << 30, "Disk space for undelivered facts, per spool folder.")
    spool_memory_bytes: int = _setting(32 << 20, "Memory for facts while the disk stalls.")
    spool_sync: str = _setting("never", "never, or always: wait for the disk at every fact.")
    export_interval_ms: int = _setting(
        200,
        "How often facts are delivered if a live page or an alert waits for them;"
        " otherwise a fifth as often.",
    )
    exit_flush_ms: int = _setting(3000, "How long an ending process may wait for a healthy endpoint.")
    heartbeat_ms: int = _setting(30_000, "Interval between heartbeats of a running process.")
    data_dir: str = _setting(
        "", "Data folder of the receiver. Default: the user's data folder, playhead."
    )
    retention: str = _setting(
        "success=7d failure=30d flagged=90d test=1d",
        "How long `playhead up` and `playhead gc` keep runs after their end: see below; or off.",
    )
    process_history: str = _setting(
        "1h 64MiB",
        "How much `playhead up` keeps of a service's work outside requests: see below; or off.",
    )
    store: str = _setting(
        "", "Database for the runs, a postgresql:// URL. Default: SQLite in the data folder."
    )
    blobs: str = _setting(
        "", "Object store for large bodies, s3://BUCKET/PREFIX. Default: next to the runs."
    )
    search: bool = _setting(
        True,
        "Whether `playhead up` indexes runs for search. Once on again, it indexes the rest.",
    )
    forward: str = _setting(
        "", "Destinations to which `playhead up` forwards spans, separated by `;`: see below."
    )
    alerts: str = _setting(
        "",
        "Alerts of `playhead up` for loops, stuck runs and failures, separated by `;`:"
        " `QUERY -> URL` or `QUERY -> COMMAND`; see below.",
    )
    alert_secret: str = _setting("", "Key that signs alerts to webhooks. From the environment only.")
    summary_model: str = _setting(
        "", "Model that `playhead summary --words` asks. Default: none is asked."
    )
    summary_model_url: str = _setting(
        "https://api.openai.com/v1", "Address of that model: an API like OpenAI's chat completions."
    )
    summary_model_key: str = _setting("", "API key for that model. From the environment only.")
    stuck_after_s: int = _setting(
        300, "Seconds without progress after which a running run counts as stuck."
    )
    silent_stream_s: int = _setting(
        60, "Seconds without a chunk after which an open stream counts as stuck."
    )
    prices: str = _setting("", "File with prices that override the price library: see below.")
    jaeger_attribute_bytes: int = _setting(
        64 << 10, "Maximum size of an attribute in the Jaeger API; 0: unlimited."
    )
    tempo_attribute_bytes: int = _setting(
        16 << 10, "Maximum size of an attribute in the Tempo API (Grafana); 0: unlimited."
    )
    public_url: str = _setting(
        "", "Public address of the query API, for links. Default: the address it listens on."
    )
    references: str = _setting(
        "",
        "Folders and `s3://BUCKET/PREFIX`, separated by `:`, with messages that spans reference"
        " (`gen_ai.input.messages_ref`, …), to show and search them.",
    )
    agent: str = _setting(
        "",
        "Name of the agent. Default: `service.name` of `OTEL_RESOURCE_ATTRIBUTES` or of the file"
        " `OTEL_CONFIG_FILE`, else the script's name.",
        "OTEL_SERVICE_NAME",
    )
    lineage: str = _setting(
        "",
        "Name shared by a run and its retries (a scheduler's task, for example): `playhead.idempotent`"
        " performs each effect once for all of them. Default: one name per run, with forks and resumes.",
    )
    claims: str = _setting(
        "",
        "Receiver for the claims of `playhead.idempotent`, for agents on several machines: the address"
        " of its query API, http://HOST:4319; the token needs scope ingest. Default: the data folder of"
        " this machine.",
    )
    level: str = _setting(
        "",
        "exchanges, causal or strict, see below. Default: strict for `playhead record`, else exchanges.",
        choices=LEVELS,
    )
    boundaries: str = _setting(
        "", "Boundaries to add to the level or to remove: `+clock,-http.urllib3`; see below."
    )
    instrumentors: str = _setting(
        "",
        "OpenTelemetry instrumentors that `playhead record` also loads, by name, or all. Default: none."
        " `opentelemetry-instrument` loads them as usual.",
    )
    excluded_urls: str = _setting(
        "",
        "Inbound requests that are not recorded: regular expressions for the URL, separated by `,`; or"
        " none. Default: requests to `/health`, `/healthz`, `/ready`, `/readyz`, `/livez`, `/metrics`,"
        " `/favicon.ico`. See below.",
        "OTEL_PYTHON_EXCLUDED_URLS",
    )
    propagation_excluded_urls: str = _setting(
        "",
        "Outgoing requests without trace context (`traceparent`, `tracestate`, `baggage`): regular"
        " expressions for the URL, separated by `,`. See below.",
        "OTEL_PYTHON_EXCLUDED_URLS",
    )
    content: str = _setting(
        "full", "full, or metadata: record no message content.", choices=("full", "metadata")
    )
    log_level: str = _setting(
        "warning",
        "Log records of the program from this level on are recorded with its run; `boundaries=-logs`:"
        " none. See below.",
        choices=("debug", "info", "warning", "error", "critical"),
    )
    control: str = _setting(
        "",
        "Whether operators may pause the agent and edit its requests: on, or rules that apply from its"
        " start, `pause tool=send_email; stop cost>1`; off: never; see below. Default: once its own user"
        " asks for it with `playhead pause` on the same machine.",
    )
    checks: str = _setting("", "Files with check functions for each recorded span, separated by `:`.")
    browse_keys: str = _setting(
        "", "Keys of `playhead browse`: `NAME=KEY`, separated by spaces; see below."
    )
    workspace: str = _setting(
        "off",
        "When to record snapshots of the working folder: off; start: at start and end, and when the"
        " program calls `playhead.workspace`; steps: also before each step.",
        choices=("off", "start", "steps"),
    )
    file_limit_bytes: int = _setting(
        16 << 20,
        "Maximum size of a recorded file; of larger files only the digest is recorded.",
    )
    checkpoint_copies_bytes: int = _setting(
        256 << 20,
        "Maximum size of copies of checkpointed states on the tape of a run; 0: no copies. Of states"
        " beyond it only id and digest are recorded.",
    )
    span_budget_bytes: int = _setting(1 << 20, "Maximum size of one span.")
    quiet: bool = _setting(False, "Print only errors on stderr.")
    disabled: bool = _setting(False, "Do not record.", "OTEL_SDK_DISABLED")

    @property
    def recording_level(self) -> Level:
        """The level, or the default if none is set."""
        return self.level if self.level in LEVELS else DEFAULT


DESCRIPTIONS: Final = dict(zip(Settings.__struct_fields__, _described, strict=True))
"""Description of each field of `Settings`, in order."""


class Resolved(msgspec.Struct, frozen=True):
    """Settings and the origin of each value."""

    settings: Settings
    origins: dict[str, str]
    """Field → ``flag``, ``environment (NAME)``, the name of a file, or ``default``."""


def environment_name(name: str) -> str:
    """``spool_dir`` → ``PLAYHEAD_SPOOL_DIR``."""
    return f"PLAYHEAD_{name.upper()}"


SECRETS = ("token", "alert_secret", "summary_model_key")
"""Settings that a file must not hold."""


def resolve(
    environ: Mapping[str, str],
    *,
    flags: Mapping[str, Any] | None = None,
    files: tuple[tuple[str, Mapping[str, Any]], ...] = (),
) -> Resolved:
    """Resolve the values of all settings.

    ``files``: (name, table) of the configuration files, in order of precedence. Raise
    `ConfigurationError` for an unknown key of a file, with the nearest one, and for an invalid value.
    """
    known, defaults = DESCRIPTIONS, Settings()
    tables: list[tuple[str, dict[str, Any]]] = []
    for source, table in files:
        normal = {key.replace("-", "_"): value for key, value in table.items()}
        for key in normal:
            if key not in known:
                raise _unknown(key, source, list(known))
            if key in SECRETS:
                raise ConfigurationError(
                    f"a {key.replace('_', ' ')} does not belong in {source}",
                    hint=f"export {environment_name(key)}=…",
                )
        tables.append((source, normal))
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for name, setting in known.items():
        raw, origin = _find(name, setting.otel, environ, flags or {}, tables)
        if origin:
            values[name] = _typed(raw, getattr(defaults, name), name, origin)
            _known(values[name], setting.choices, name, origin)
        origins[name] = origin or "default"
    return Resolved(Settings(**values), origins)


def _find(
    name: str,
    otel: str,
    environ: Mapping[str, str],
    flags: Mapping[str, Any],
    tables: list[tuple[str, dict[str, Any]]],
) -> tuple[Any, str]:
    if flags.get(name) is not None:
        return flags[name], "flag"
    for variable in (environment_name(name), otel):
        if variable and environ.get(variable):
            return environ[variable], f"environment ({variable})"
    if name == "agent" and (service := _resource_attribute("service.name", environ)):
        return service, "environment (OTEL_RESOURCE_ATTRIBUTES)"
    for source, table in tables:
        if name in table:
            return table[name], source
    return None, ""


def _resource_attribute(name: str, environ: Mapping[str, str]) -> str:
    """Return a value of ``OTEL_RESOURCE_ATTRIBUTES``, parsed as in the SDK; empty if it is missing."""
    pairs = (pair.partition("=") for pair in environ.get("OTEL_RESOURCE_ATTRIBUTES", "").split(","))
    values = [value.strip() for key, _, value in pairs if key.strip() == name]
    if not values:
        return ""
    from urllib.parse import unquote  # few processes have this variable

    return unquote(values[-1])


def _typed(raw: Any, default: Any, name: str, origin: str) -> Any:
    if isinstance(default, bool):
        if isinstance(raw, bool):
            return raw
        if str(raw).lower() in ("1", "true", "yes", "on"):
            return True
        if str(raw).lower() in ("0", "false", "no", "off"):
            return False
        raise ConfigurationError(f"{name} from {origin} is {raw!r}, not true or false")
    if isinstance(default, int):
        try:
            return int(raw)
        except (TypeError, ValueError):
            raise ConfigurationError(f"{name} from {origin} is {raw!r}, not a whole number") from None
    return str(raw)


def _known(value: Any, choices: tuple[str, ...], name: str, origin: str) -> None:
    if choices and value not in choices:
        listed = f"{', '.join(choices[:-1])} or {choices[-1]}"
        near = nearest(str(value), choices)
        hint = f"did you mean {near}?" if near else ""
        raise ConfigurationError(f"{name} from {origin} is {value!r}, not {listed}", hint=hint)
    if name == "boundaries":
        parse(value)
    if name.endswith("excluded_urls"):
        try:
            [re.compile(one) for one in value.split(",")]
        except re.error as problem:
            raise ConfigurationError(
                f"{name} from {origin} is not a list of regular expressions: {problem}",
                hint="e.g. /health,/internal/.*",
            ) from None


def _unknown(key: str, source: str, known: list[str]) -> ConfigurationError:
    near = nearest(key, known)
    hint = f"did you mean {near.replace('_', '-')}?" if near else "see: playhead doctor --config"
    return ConfigurationError(f"unknown setting {key.replace('_', '-')} in {source}", hint=hint)
