"""Formats of providers' keys and tokens: a fixed prefix, then characters of a set.

The prefixes are those that the providers document. The lengths are lower bounds, since they change. A
shape differs from words by what precedes it (no letter or digit) and by a digit in it.
"""

from __future__ import annotations

from typing import Final

import msgspec

_NOT_WITHIN = rb"(?<![A-Za-z0-9_])"
_WORD = r"[A-Za-z0-9]"
_SLUG = r"[A-Za-z0-9_-]"


class Shape(msgspec.Struct, frozen=True):
    """One kind of key. ``starts``: possible prefixes.

    ``rest``: a pattern for what follows; if it has a group ``secret``, only that group is hidden.
    ``source``: who documents it.
    """

    name: str
    starts: tuple[str, ...]
    rest: str
    source: str
    usual_behind: tuple[str, ...] = ()
    """Texts directly behind which such a prefix is usual, so that it alone says nothing."""

    def pattern(self) -> bytes:
        """Return a pattern that matches where a prefix was found."""
        starts = "|".join(start.replace(".", r"\.") for start in self.starts)
        return _NOT_WITHIN + f"(?:{starts}){self.rest}".encode()


_BYTES: Final = ('"bytes":"', '"bytes": "')
"""Where Amazon's event streams have JSON in base64: that begins as a token does, without its dots."""


def _run(of: str, least: int) -> str:
    """Return a pattern for at least ``least`` characters, with a digit among them."""
    return rf"(?={of}*[0-9]){of}{{{least},}}"


SHAPES: Final[tuple[Shape, ...]] = (
    Shape("OpenAI, Anthropic, OpenRouter, DeepSeek", ("sk-",), _run(_SLUG, 16), "their API references"),
    Shape("GitHub", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), _run(_WORD, 16), "docs.github.com"),
    Shape("GitHub, fine-grained", ("github_pat_",), _run(r"\w", 16), "docs.github.com"),
    Shape("AWS access key", ("AKIA", "ASIA"), r"[A-Z0-9]{16}(?![A-Za-z0-9])", "docs.aws.amazon.com"),
    Shape("Google API key", ("AIza",), _SLUG + "{30,}", "cloud.google.com"),
    Shape("Google OAuth", ("ya29.", "GOCSPX-"), _run(_SLUG, 16), "developers.google.com"),
    Shape("Groq", ("gsk_",), _run(_WORD, 16), "console.groq.com"),
    Shape("Hugging Face", ("hf_", "api_org_"), r"[A-Za-z0-9]{24,}", "huggingface.co/docs"),
    Shape("xAI", ("xai-",), _run(_SLUG, 16), "docs.x.ai"),
    Shape("Replicate", ("r8_",), _run(_WORD, 20), "replicate.com/docs"),
    Shape("Perplexity", ("pplx-",), _run(_WORD, 16), "docs.perplexity.ai"),
    Shape("Fireworks, NVIDIA", ("fw_", "nvapi-"), _run(_SLUG, 20), "their API references"),
    Shape("Tavily, Langfuse, LangSmith", ("tvly-", "pk-lf-", "lsv2_"), _run(_SLUG, 16), "their docs"),
    Shape("GitLab", ("glpat-", "gldt-", "glrt-"), _run(_SLUG, 16), "docs.gitlab.com"),
    Shape("Stripe", ("sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"), _run(_WORD, 14),
          "docs.stripe.com"),
    Shape("Slack", ("xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xapp-"), _run(_SLUG, 10),
          "api.slack.com"),
    Shape("npm, PyPI", ("npm_", "pypi-"), _run(_SLUG, 24), "docs.npmjs.com, pypi.org/help"),
    Shape("SendGrid", ("SG.",), r"[\w-]{16,}\.[\w-]{16,}", "docs.sendgrid.com"),
    Shape("DigitalOcean", ("dop_v1_", "doo_v1_"), r"[a-f0-9]{32,}", "docs.digitalocean.com"),
    Shape("Shopify", ("shpat_", "shpss_", "shpca_"), r"[a-fA-F0-9]{24,}", "shopify.dev"),
    Shape("Databricks", ("dapi",), r"[a-f0-9]{32}", "docs.databricks.com"),
    Shape("JSON Web Token", ("eyJ",), r"[\w-]{6,}\.[\w-]{6,}\.[\w-]{6,}", "RFC 7519",
          _BYTES),
    Shape(
        "private key",
        ("-----BEGIN ",),
        r"[A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?P<secret>[^-]{8,}(?:-(?!----)[^-]*)*)",
        "RFC 7468",
    ),
    Shape("bearer", ("Bearer ", "bearer "), r"(?P<secret>(?=[\w.~+/-]*[0-9])[\w.~+/-]{16,}=*)",
          "RFC 6750"),
    Shape("basic", ("Basic ",),
          r"(?P<secret>(?=[\w+/]*[0-9])(?=[\w+/]*[a-z])(?=[\w+/]*[A-Z])[A-Za-z0-9+/]{12,}=*)",
          "RFC 7617"),
    Shape("netrc", ("login ",),
          r"\S+\s+(?:account\s+\S+\s+)?(?:\\n\s*)?password\s+(?P<secret>[^\s\"'\\]+)", "netrc(5)"),
)  # fmt: skip
"""The shapes of every process."""
