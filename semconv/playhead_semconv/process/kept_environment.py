"""Which environment variables are an input of a run: kept on its tape, and restored at its replay."""

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
"""Where a program finds its services, and which model it asks."""

NEVER = ("HOOK", "DSN", "OTEL_", "PLAYHEAD_")
"""Nowhere in the name: addresses that are secrets in themselves, and what is said to the recorder."""


def is_kept(name: str) -> bool:
    """Whether the variable ``name`` is kept. A credential among them is kept without its value.

    >>> is_kept("OPENAI_API_KEY"), is_kept("TOOLS_URL"), is_kept("SLACK_WEBHOOK_URL"), is_kept("HOME")
    (True, True, False, False)
    """
    if any(word in name for word in NEVER):
        return False
    return name.startswith(BEGINNINGS) or name.endswith(ENDINGS)


HARMLESS = ("PYTHONHASHSEED", "PYTHONUTF8", "PYTHONIOENCODING", "PYTHONDONTWRITEBYTECODE")
"""Of Python's own variables those that do not say which code runs."""

ADDRESSES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "_URL", "_ENDPOINT", "_HOST", "_PORT")
"""How variables end that say where requests go, and the credentials in them."""


def is_let_in(name: str, *, live: bool) -> bool:
    """Whether a run that somebody else has recorded may set the variable ``name``.

    ``live``: where its program goes on for real; then it does not say where requests go.

    >>> [is_let_in(name, live=False) for name in ("TZ", "LD_PRELOAD", "PYTHONPATH")]
    [True, False, False]
    >>> is_let_in("OPENAI_BASE_URL", live=False), is_let_in("OPENAI_BASE_URL", live=True)
    (True, False)
    """
    if not is_kept(name) or (name.startswith("PYTHON") and name not in HARMLESS):
        return False
    return not (live and name.upper().endswith(ADDRESSES))
