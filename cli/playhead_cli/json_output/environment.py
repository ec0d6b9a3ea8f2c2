"""The environment of runs: receiver, tokens, spool, settings, shell."""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class PrintedReceiver(TypedDict):
    """``playhead up``: its addresses, printed when it listens."""

    schema_version: Literal[1]
    http: str
    grpc: str
    query: str
    data_dir: str
    store: str
    forward: list[str]
    pid: int


class PrintedLink(TypedDict):
    """``playhead open``: the address of the pages."""

    schema_version: Literal[1]
    link: str
    """Its fragment may hold a token."""


class PrintedToken(TypedDict):
    """A token without its secret."""

    id: str
    name: str
    tenant: str
    scopes: list[Literal["ingest", "read", "control", "admin"]]
    created_ns: int
    expires_ns: int | None
    revoked_ns: int | None
    used_ns: int | None


class PrintedNewToken(PrintedToken):
    """``playhead token create``: the token, shown once, and environment variables for its user."""

    schema_version: Literal[1]
    token: str
    variables: dict[str, str]
    query: str


class PrintedTokens(TypedDict):
    """``playhead token list`` and ``playhead token revoke``: all tokens, or the revoked ones."""

    schema_version: Literal[1]
    tokens: list[PrintedToken]


class PrintedUndelivered(TypedDict):
    """Undelivered data of a process."""

    instance: str
    agent: str | None
    pid: int | None
    alive: bool
    facts: int
    spans: int
    size_bytes: int


class PrintedSpool(TypedDict):
    """``playhead spool ls``: undelivered data by process."""

    schema_version: Literal[1]
    pending: list[PrintedUndelivered]


class PrintedPush(TypedDict):
    """``playhead spool push``: delivered and undelivered data."""

    schema_version: Literal[1]
    endpoint: str
    facts: int
    spans: int
    rejected: int
    problem: str | None
    pending: list[PrintedUndelivered]


class PrintedFinding(TypedDict):
    """A line of the doctor."""

    mark: Literal["good", "warning", "bad", "off"]
    text: str
    hint: str | None


class PrintedDiagnosis(TypedDict):
    """``playhead doctor``: what is recorded, what is not, and why."""

    schema_version: Literal[1]
    findings: list[PrintedFinding]


class PrintedSetting(TypedDict):
    """The value of a setting, and its source."""

    value: Any
    origin: str


class PrintedSettings(TypedDict):
    """``playhead doctor --config``: every setting."""

    schema_version: Literal[1]
    settings: dict[str, PrintedSetting]


class PrintedCompletion(TypedDict):
    """``playhead completion``: the script of a shell."""

    schema_version: Literal[1]
    shell: Literal["bash", "fish", "zsh"]
    script: str


class PrintedDemo(TypedDict):
    """``playhead demo``: the result; the commands and their output go to stderr.

    ``variables``: those with which other programs find the provider that stays up, else null.
    """

    schema_version: Literal[1]
    part: Literal["tour", "travel", "incident"] | None
    variables: dict[str, str] | None
    exit_code: int
