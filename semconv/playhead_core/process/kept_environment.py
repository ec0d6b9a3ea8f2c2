"""Which environment variables are inputs of a run: kept on its tape, and restored at its replay."""

BEGINNINGS = (
    "LANG",
    "LC_",
    "TZ",
    "PYTHON",
    "PYTEST_",
    "OPENAI_",
    "ANTHROPIC_",
    "AZURE_OPENAI_",
    "GOOGLE_CLOUD_",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
)
ENDINGS = ("_URL", "_ENDPOINT", "_HOST", "_PORT", "_MODEL")
"""Suffixes of variables that name services or models."""

NEVER = ("HOOK", "DSN", "OTEL_", "PLAYHEAD_")
"""Substrings that exclude a variable: addresses that are secrets themselves, and recorder settings."""


def is_kept(name: str) -> bool:
    """Whether the variable ``name`` is kept. Credentials are kept without their values.

    >>> is_kept("OPENAI_API_KEY"), is_kept("TOOLS_URL"), is_kept("SLACK_WEBHOOK_URL"), is_kept("HOME")
    (True, True, False, False)
    """
    if any(word in name for word in NEVER):
        return False
    return name.startswith(BEGINNINGS) or name.endswith(ENDINGS)


HARMLESS = ("PYTHONHASHSEED", "PYTHONUTF8", "PYTHONIOENCODING", "PYTHONDONTWRITEBYTECODE")
"""Variables of Python that do not determine which code runs."""

ADDRESSES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "_URL", "_ENDPOINT", "_HOST", "_PORT")
"""Suffixes of variables that determine where requests, and the credentials in them, are sent."""


def is_let_in(name: str, *, live: bool) -> bool:
    """Whether a run that somebody else recorded may set the variable ``name``.

    ``live``: the program continues for real; then the run must not determine where requests are sent.

    >>> [is_let_in(name, live=False) for name in ("TZ", "LD_PRELOAD", "PYTHONPATH")]
    [True, False, False]
    >>> is_let_in("OPENAI_BASE_URL", live=False), is_let_in("OPENAI_BASE_URL", live=True)
    (True, False)
    """
    if not is_kept(name) or (name.startswith("PYTHON") and name not in HARMLESS):
        return False
    return not (live and name.upper().endswith(ADDRESSES))
