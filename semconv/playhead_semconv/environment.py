"""Which environment variables are an input of a run: kept on its tape, and restored at its replay."""

KEPT_VARIABLES = (
    "LANG",
    "LC_",
    "TZ",
    "PYTHON",
    "OPENAI_",
    "ANTHROPIC_",
    "AZURE_OPENAI_",
    "GOOGLE_CLOUD_",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
)
"""By how they begin. A credential among them is kept without its value."""
