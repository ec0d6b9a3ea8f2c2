"""Formats of providers' keys and tokens: a fixed prefix, then characters of a set.

The prefixes are those that the providers document, and those of the catalogue of gitleaks (MIT licence,
github.com/gitleaks/gitleaks, config/gitleaks.toml). The lengths are lower bounds, since they change. A
shape differs from words by what precedes it (no letter or digit) and by a digit in it.
"""

from __future__ import annotations

from typing import Final

import msgspec

_NOT_WITHIN = rb"(?<![A-Za-z0-9_])"
_WORD = r"[A-Za-z0-9]"
_SLUG = r"[A-Za-z0-9_-]"
_HEX = "[a-fA-F0-9]"
_WORD_ARGUMENT = r"{1,8}[\"']?(?P<secret>[^\s\"'\\$<{*-][^\s\"'\\]{0,511})"


class Shape(msgspec.Struct, frozen=True):
    """One kind of key. ``starts``: possible prefixes.

    ``rest``: a pattern for what follows; if it has a group ``secret``, only that group is hidden.
    ``source``: who documents it.
    """

    name: str
    starts: tuple[str, ...]
    rest: str
    source: str
    behind: bytes = _NOT_WITHIN
    """A pattern (a lookbehind) for what precedes it."""
    usual_behind: tuple[str, ...] = ()
    """Texts directly behind which such a prefix is usual, so that it alone says nothing."""

    def pattern(self) -> bytes:
        """Return a pattern that matches where a prefix was found."""
        starts = "|".join(start.replace(".", r"\.") for start in self.starts)
        return self.behind + f"(?:{starts}){self.rest}".encode()


_BYTES: Final = ('"bytes":"', '"bytes": "')
"""Where Amazon's event streams have JSON in base64: that begins as a token does, without its dots."""


def _run(of: str, least: int) -> str:
    """Return a pattern for at least ``least`` characters, with a digit among the first 256."""
    return rf"(?={of}{{0,255}}[0-9]){of}{{{least},}}"


SHAPES: Final[tuple[Shape, ...]] = (
    Shape("OpenAI, Anthropic, OpenRouter, DeepSeek", ("sk-",), _run(_SLUG, 16), "their API references"),
    Shape("GitHub", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), _run(_WORD, 16), "docs.github.com"),
    Shape("GitHub, fine-grained", ("github_pat_",), _run(r"\w", 16), "docs.github.com"),
    Shape("AWS access key", ("AKIA", "ASIA", "ABIA", "ACCA"), r"[A-Z0-9]{16}(?![A-Za-z0-9])",
          "docs.aws.amazon.com"),
    Shape("Google API key", ("AIza",), _SLUG + "{30,}", "cloud.google.com"),
    Shape("Google OAuth", ("ya29.", "GOCSPX-"), _run(_SLUG, 16), "developers.google.com"),
    Shape("Groq", ("gsk_",), _run(_WORD, 16), "console.groq.com"),
    Shape("Hugging Face", ("hf_", "api_org_"), r"[A-Za-z0-9]{24,}", "huggingface.co/docs"),
    Shape("xAI", ("xai-",), _run(_WORD, 16), "docs.x.ai"),
    Shape("Replicate", ("r8_",), _run(_WORD, 20), "replicate.com/docs"),
    Shape("Perplexity", ("pplx-",), _run(_WORD, 16), "docs.perplexity.ai"),
    Shape("Fireworks, NVIDIA", ("fw_", "nvapi-"), _run(_SLUG, 20), "their API references"),
    Shape("Tavily, Langfuse, LangSmith", ("tvly-", "pk-lf-", "lsv2_"), _run(_SLUG, 16), "their docs"),
    Shape("GitLab", ("glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glffct-", "glft-", "glimt-",
          "glagent-", "gloas-", "glsoat-", "GR1348941"), _run(_SLUG, 16), "docs.gitlab.com"),
    Shape("Stripe", ("sk_live_", "sk_test_", "sk_prod_", "rk_live_", "rk_test_",
          "rk_prod_", "whsec_"), _run(_WORD, 14),
          "docs.stripe.com"),
    Shape("Slack", ("xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xoxe.", "xoxo-", "xapp-"),
          _run(r"[\w.-]", 10), "api.slack.com"),
    Shape("npm", ("npm_",), _run(_WORD, 24), "docs.npmjs.com"),
    Shape("PyPI", ("pypi-",), _run(_SLUG, 24), "pypi.org/help"),
    Shape("SendGrid", ("SG.",), r"[\w-]{16,}\.[\w-]{16,}", "docs.sendgrid.com"),
    Shape("DigitalOcean", ("dop_v1_", "doo_v1_", "dor_v1_"), r"[a-f0-9]{32,}", "docs.digitalocean.com"),
    Shape("Shopify", ("shpat_", "shpss_", "shpca_", "shppa_"), r"[a-fA-F0-9]{24,}", "shopify.dev"),
    Shape("Databricks", ("dapi",), r"[a-f0-9]{32}", "docs.databricks.com"),
    Shape("JSON Web Token", ("eyJ",), r"[\w-]{6,2000}+\.[\w-]{6,}\.[\w-]{6,}", "RFC 7519",
          usual_behind=_BYTES),
    Shape(
        "private key",
        ("-----BEGIN ",),
        r"[A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?P<secret>[^-]{8,}(?:-(?!----)[^-]*)*)",
        "RFC 7468",
    ),
    Shape("bearer", ("Bearer ", "bearer "), r"(?P<secret>(?=[\w.~+/-]{0,255}[0-9])[\w.~+/-]{16,}=*)",
          "RFC 6750"),
    Shape("basic", ("Basic ",),
          r"(?P<secret>(?=[\w+/]{0,255}[0-9])(?=[\w+/]{0,255}[a-z])(?=[\w+/]{0,255}[A-Z])[A-Za-z0-9+/]{12,}=*)",
          "RFC 7617"),
    Shape("netrc", ("login ",),
          r"\S+\s+(?:account\s+\S+\s+)?(?:\\n\s*)?password\s+(?P<secret>[^\s\"'\\]+)", "netrc(5)"),
    Shape("Together, Pinecone, W&B", ("tgp_v1_", "pcsk_", "wandb_v1_"), _run(_SLUG, 20), "their docs"),
    Shape("services of models", ("csk-", "esecret_", "e2b_", "jina_", "apify_api_", "bedrock-api-key-"),
          _run(_WORD, 20), "their docs"),
    Shape("Amazon Bedrock", ("ABSK",), _run("[A-Za-z0-9+/]", 36), "docs.aws.amazon.com"),
    Shape("ElevenLabs, Firecrawl", ("sk_", "fc-"), _HEX + "{32,}", "their docs"),
    Shape("hosting", ("sbp_", "sb_secret_", "vcp_", "nfp_", "rnd_", "napi_", "HRKU-", "fo1_", "fm1r_",
          "fm1a_", "fm2_", "tk-us-", "pscale_tkn_", "pscale_oauth_", "pscale_pw_", "mdb_sa_sk_"),
          _run("[A-Za-z0-9.+/-]", 20), "their docs; gitleaks"),
    Shape("registries and builds", ("dckr_pat_", "bkua_", "CCIPAT_", "CLOJARS_", "AKCp", "cmVmd"),
          _run(_SLUG, 20), "their docs; gitleaks"),
    Shape("RubyGems, Pulumi, Postman", ("rubygems_", "pul-", "PMAK-"), "[a-f0-9-]{32,}", "gitleaks"),
    Shape("work", ("ntn_", "lin_api_", "lin_oauth_", "figd_", "ATATT3", "ATCTT3", "BBDC-", "tfp_",
          "CFPAT-", "fio-u-", "rdme_"), _run(_SLUG, 24), "gitleaks"),
    Shape("Notion", ("secret_",), _run(_WORD, 32), "developers.notion.com"),
    Shape("1Password", ("A3-",), r"[A-Z0-9]{6}(?:-[A-Z0-9]{5,11}){4,5}", "gitleaks"),
    Shape("vaults", ("ops_eyJ", "dp.pt.", "dp.st.", "hvs.", "hvb.", "AGE-SECRET-KEY-1", "atlasv1."),
          _run(_SLUG, 20), "gitleaks"),
    Shape("observability", ("glc_", "glsa_", "NRAK-", "NRII-", "NRJS-", "phx_", "sntrys_", "sntryu_",
          "dt0c01.", "dt0s16."), _run(r"[\w.+/-]", 19), "gitleaks"),
    Shape("networks", ("tskey-", "dnkey-"), _run(_SLUG, 24), "gitleaks"),
    Shape("clouds", ("LTAI", "AQVN", "t1.", "p8e-"), _run(r"[\w.-]", 20), "gitleaks"),
    Shape("payments", ("sq0atp-", "sq0csp-", "EAAA", "EAAM", "EAAC", "EZAK", "EZTK", "FLWSECK-",
          "FLWSECK_TEST-", "duffel_test_", "duffel_live_", "shippo_live_", "shippo_test_"),
          _run(_SLUG, 20), "gitleaks"),
    Shape("mail", ("xkeysib-", "xsmtpsib-", "key-", "pubkey-"), _HEX + "{32,}[A-Za-z0-9-]*", "gitleaks",
          rb"(?<![\w-])"),
    Shape("Resend", ("re_",), r"(?=\w*[0-9])[A-Za-z0-9]{6,}_[A-Za-z0-9]{16,}", "resend.com/docs"),
    Shape("Twilio", ("SK",), _HEX + r"{32}(?![A-Za-z0-9])", "gitleaks"),
    Shape("code", ("squ_", "sqp_", "sqa_", "sgp_"), _HEX + r"[a-zA-Z0-9_]{31,}", "gitleaks"),
    Shape("SettleMint, Prefect, Infracost", ("sm_aat_", "sm_pat_", "sm_sat_", "pnu_", "ico-"),
          _run(_WORD, 16), "gitleaks"),
    Shape("OpenShift", ("sha256~",), _SLUG + "{36,}", "gitleaks"),
    Shape("Harness", ("pat.", "sat."), r"[\w-]{20,}\.[A-Za-z0-9]{20,}\.[A-Za-z0-9]{16,}", "gitleaks"),
    Shape("Telegram", (":AA",), r"[\w-]{32,33}(?![\w-])", "core.telegram.org", rb"(?<=[0-9]{5})"),
    Shape("Azure client secret", ("Q~",), r"[\w~.-]{31,34}", "gitleaks", rb"(?<=[\w~.]{3}[0-9])"),
    Shape("address of a webhook", ("hooks.slack.com/services/", "hooks.slack.com/workflows/",
          "hooks.slack.com/triggers/", "discord.com/api/webhooks/", "webhook.office.com/webhookb2/"),
          r"(?P<secret>[\w/@+-]{20,})", "gitleaks"),
    Shape("curl", ("-u ", "--user "),
          r"[\"']?[^\s:\"'\\]{1,200}:(?P<secret>(?![0-9]+(?:\s|\Z))[^\s\"'\\]{3,})",
          "curl(1)", rb"(?<![\w-])"),
    Shape("sshpass", ("sshpass -p ",), r"[\"']?(?P<secret>[^\s\"'\\$]{3,})", "sshpass(1)"),
    Shape("mysql", tuple(f"{one}{end}" for one in ("mysql", "mysqldump", "mysqladmin", "mariadb")
          for end in (" ", '"', "'")),
          r"(?:[^\r\n|;&]{0,200}?[\s\"'])?-p(?!ort\b|rotocol|lugin|ager|rint)[\"']?(?P<secret>[^\s\"'\\$]{3,})",
          "mysql(1)"),
    Shape("login", ("docker login ", "podman login ", "az login ", "mongosh ", "mongo ", "mongodump "),
          r"(?:[^\r\n|;&]{0,200}?\s)?-p\s" + _WORD_ARGUMENT, "docker login(1)"),
    Shape("redis-cli", ("redis-cli ",), r"(?:[^\r\n|;&]{0,200}?\s)?-a\s" + _WORD_ARGUMENT,
          "redis-cli(1)"),
    Shape("sqlcmd", ("sqlcmd ",), r"(?:[^\r\n|;&]{0,200}?\s)?-P\s" + _WORD_ARGUMENT, "sqlcmd(1)"),
    Shape("Dockerfile", ("ENV ", "setx ", "aws configure set "),
          r"(?i:\w{0,64}(?:password|secret|token|key))[ \t]" + _WORD_ARGUMENT, "their references"),
    Shape("Azure SAS", ("sig=",), r"(?P<secret>[A-Za-z0-9%+/]{40,200}(?:=|%3[Dd])?)",
          "learn.microsoft.com", rb"(?<=[?&;])"),
    Shape("SQL", ("IDENTIFIED BY '", "identified by '", "PASSWORD '", "password '"),
          r"(?P<secret>[^'\r\n\\]{1,512})'", "SQL"),
    Shape("Oracle", ("jdbc:oracle:thin:", "jdbc:oracle:oci:", "sqlplus "),
          r"[^\s/@:\"'\\]{1,128}/\"?(?P<secret>[^\s@/\"'\\]{1,256})\"?@", "docs.oracle.com"),
)  # fmt: skip
"""The shapes of every process."""
