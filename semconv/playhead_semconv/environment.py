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
