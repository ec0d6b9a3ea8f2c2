"""Every setting of playhead, and how its value is found.

Flag > code > ``PLAYHEAD_*`` > ``OTEL_*`` > nearest ``pyproject.toml`` ``[tool.playhead]`` >
``~/.config/playhead/config.toml`` > default. This module is pure: the caller brings the environment
and the tables of the files (`playhead_semconv` does no I/O).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import msgspec

from playhead_core.boundaries import DEFAULT, LEVELS, Level, parse
from playhead_core.errors import ConfigurationError, nearest

RECORDED_BY = "PLAYHEAD_RECORDED_BY"
"""Variable of all that one `playhead record` runs: a word by which it finds what they recorded."""

RECORDED_RUNS = "PLAYHEAD_RECORDED_RUNS"
"""Variable of the same: a file to which each process adds a JSON line with its run."""


def _setting(default: Any, doc: str, otel: str = "", choices: tuple[str, ...] = ()) -> Any:
    return field(default=default, metadata={"doc": doc, "otel": otel, "choices": choices})


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one process. Field ``spool_dir`` is ``PLAYHEAD_SPOOL_DIR`` and ``spool-dir``."""

    endpoint: str = _setting(
        "http://127.0.0.1:4318", "Where tape and spans go: a receiver, or a Collector set up for it."
    )
    protocol: str = _setting("http/protobuf", "http/protobuf or grpc.")
    endpoint_kind: str = _setting(
        "auto", "auto: ask the endpoint; playhead; or other: spans travel to it whole."
    )
    destination: str = _setting(
        "",
        "What the endpoint stands for, if its address changes. Undelivered facts go to the same"
        " destination only. `playhead record` sets it to its data folder. Default: the endpoint.",
    )
    token: str = _setting("", "Bearer token for the endpoint. From the environment only.")
    certificate: str = _setting(
        "", "CA certificate file for the endpoint.", "OTEL_EXPORTER_OTLP_CERTIFICATE"
    )
    client_certificate: str = _setting(
        "",
        "Certificate file that the endpoint is shown, where it wants one.",
        "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
    )
    client_key: str = _setting(
        "", "Its private key; may be in the same file.", "OTEL_EXPORTER_OTLP_CLIENT_KEY"
    )
    spool_dir: str = _setting("", "Spool folder. Default: the user's state folder, playhead/spool.")
    spool_budget_bytes: int = _setting(
        1 << 30, "Disk that undelivered facts may take, per spool folder."
    )
    spool_memory_bytes: int = _setting(32 << 20, "Memory that facts may take while the disk stalls.")
    spool_sync: str = _setting("never", "never, or always: wait for the disk at every fact.")
    export_interval_ms: int = _setting(200, "How often the shipper looks for something to send.")
    exit_flush_ms: int = _setting(3000, "How long a process that ends may wait for a healthy endpoint.")
    heartbeat_ms: int = _setting(30_000, "How often a living process says so.")
    data_dir: str = _setting("", "The receiver's data. Default: the user's data folder, playhead.")
    retention: str = _setting(
        "success=7d failure=30d flagged=90d test=1d",
        "How long runs are kept after their end, by `playhead up` and `playhead gc`: see below; or off.",
    )
    process_history: str = _setting(
        "1h 64MiB",
        "What `playhead up` keeps of what a service does for no request: see below; or off.",
    )
    store: str = _setting(
        "", "Database that keeps the runs, a postgresql:// URL. Default: the data folder does."
    )
    blobs: str = _setting(
        "", "Object store for large bodies, s3://BUCKET/PREFIX. Default: they lie beside the runs."
    )
    search: bool = _setting(
        True, "Whether `playhead up` makes searchable what it stores; what it left out it does later."
    )
    forward: str = _setting(
        "", "Destinations that `playhead up` sends spans on to, `;` between them: see below."
    )
    prices: str = _setting("", "File with prices that go before those of the price library: see below.")
    jaeger_attribute_bytes: int = _setting(
        64 << 10, "Most that Jaeger is given of one attribute; 0: all of it."
    )
    tempo_attribute_bytes: int = _setting(
        16 << 10, "Most that Grafana is given of one attribute through the Tempo API; 0: all of it."
    )
    public_url: str = _setting(
        "", "Where people reach the query API, for links. Default: where it listens."
    )
    references: str = _setting(
        "",
        "Folders and `s3://BUCKET/PREFIX`, `:` between them, where messages lie that spans refer to"
        " (`gen_ai.input.messages_ref`, …); they are shown and searched.",
    )
    agent: str = _setting(
        "",
        "Name of the agent. Default: `service.name` of `OTEL_RESOURCE_ATTRIBUTES` or of the file"
        " `OTEL_CONFIG_FILE`, else the script's name.",
        "OTEL_SERVICE_NAME",
    )
    lineage: str = _setting(
        "",
        "Name that a run and its retries share (a scheduler's task, say): `playhead.idempotent` does"
        " once what they do. Default: each run has its own, with its forks and resumes.",
    )
    claims: str = _setting(
        "",
        "Receiver that keeps what `playhead.idempotent` claims, for agents of several machines: the"
        " address of its query API, http://HOST:4319; the token needs scope ingest. Default: the data"
        " folder of this machine does.",
    )
    level: str = _setting(
        "",
        "exchanges, causal or strict, see below. Default: strict for `playhead record`, else exchanges.",
        choices=LEVELS,
    )
    boundaries: str = _setting(
        "", "Boundaries that are added to the level or left out: `+clock,-http.urllib3`; see below."
    )
    instrumentors: str = _setting(
        "",
        "Instrumentors of OpenTelemetry that `playhead record` loads beside playhead, by name, or all."
        " Default: none. `opentelemetry-instrument` loads them as ever.",
    )
    excluded_urls: str = _setting(
        "",
        "Requests that are served without being recorded: regular expressions, `,` between them, one of"
        " which is found in the URL; or none. Default: those to `/health`, `/healthz`, `/ready`,"
        " `/readyz`, `/livez`, `/metrics`, `/favicon.ico`. See below.",
        "OTEL_PYTHON_EXCLUDED_URLS",
    )
    content: str = _setting(
        "full", "full, or metadata: no message content is recorded.", choices=("full", "metadata")
    )
    control: str = _setting(
        "",
        "Whether operators may pause the agent and edit what it asks: on, or rules that hold from its"
        " start, `pause tool=send_email; stop cost>1`; see below. Default: off.",
    )
    checks: str = _setting(
        "", "Files of check functions, `:` between them, that look at each span of what is recorded."
    )
    browse_keys: str = _setting(
        "", "Other keys of `playhead browse`, `NAME=KEY` with spaces between them: see below."
    )
    workspace: str = _setting(
        "off",
        "off, or when snapshots of the working folder are recorded: start: at start and end, and where"
        " the program says `playhead.workspace`; steps: also before each step.",
        choices=("off", "start", "steps"),
    )
    file_limit_bytes: int = _setting(
        16 << 20,
        "Of a larger file that the program reads or writes the digest is kept, not the content.",
    )
    checkpoint_copies_bytes: int = _setting(
        256 << 20,
        "What copies of the states that a program puts into stores of checkpoints take on the tape of a"
        " run; 0: none is made. Of states beyond that only id and digest are kept.",
    )
    span_budget_bytes: int = _setting(1 << 20, "Largest size of one span.")
    quiet: bool = _setting(False, "Say nothing on stderr but errors.")
    disabled: bool = _setting(False, "Do not record.", "OTEL_SDK_DISABLED")

    @property
    def recording_level(self) -> Level:
        """The level, or the default where nobody has chosen one."""
        return self.level if self.level in LEVELS else DEFAULT


class Resolved(msgspec.Struct, frozen=True):
    """Settings and where each value came from."""

    settings: Settings
    origins: dict[str, str]
    """Field → ``flag``, ``environment (NAME)``, the name of a file, or ``default``."""


def environment_name(name: str) -> str:
    """``spool_dir`` → ``PLAYHEAD_SPOOL_DIR``."""
    return f"PLAYHEAD_{name.upper()}"


def resolve(
    environ: Mapping[str, str],
    *,
    flags: Mapping[str, Any] | None = None,
    files: tuple[tuple[str, Mapping[str, Any]], ...] = (),
) -> Resolved:
    """Find the value of every setting.

    ``files``: (name, table) of the configuration files, strongest first. `ConfigurationError` for an
    unknown key of a file (it names the nearest) and for a value of the wrong type or without a meaning.
    """
    known = {f.name: f for f in fields(Settings)}
    tables: list[tuple[str, dict[str, Any]]] = []
    for source, table in files:
        normal = {key.replace("-", "_"): value for key, value in table.items()}
        for key in normal:
            if key not in known:
                raise _unknown(key, source, list(known))
            if key == "token":
                raise ConfigurationError(
                    f"a token does not belong in {source}", hint="export PLAYHEAD_TOKEN=…"
                )
        tables.append((source, normal))
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for name, setting in known.items():
        raw, origin = _find(name, setting.metadata["otel"], environ, flags or {}, tables)
        if origin:
            values[name] = _typed(raw, setting.default, name, origin)
            _known(values[name], setting.metadata["choices"], name, origin)
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
    """A value of ``OTEL_RESOURCE_ATTRIBUTES``, read as the SDK does; empty if it is not there."""
    pairs = (pair.partition("=") for pair in environ.get("OTEL_RESOURCE_ATTRIBUTES", "").split(","))
    values = [value.strip() for key, _, value in pairs if key.strip() == name]
    if not values:
        return ""
    from urllib.parse import unquote  # most processes have no such variable

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
    if name == "excluded_urls":
        try:
            [re.compile(one) for one in value.split(",")]
        except re.error as problem:
            raise ConfigurationError(
                f"excluded_urls from {origin} is no list of regular expressions: {problem}",
                hint="e.g. /health,/internal/.*",
            ) from None


def _unknown(key: str, source: str, known: list[str]) -> ConfigurationError:
    near = nearest(key, known)
    hint = f"did you mean {near.replace('_', '-')}?" if near else "see: playhead doctor --config"
    return ConfigurationError(f"unknown setting {key.replace('_', '-')} in {source}", hint=hint)
