"""The known formats: secrets that announce themselves by a prefix or a shape.

A format is a row: kind, what its beginning looks like, and what follows. The beginning is what
the multi-pattern engine looks for, so it is short, of bounded length, and rare in ordinary text.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Callable

from msgspec import Struct

from debrief.redaction.plausibility import entropy, is_sample

_EDGE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
_ALNUM = "[A-Za-z0-9]"
_WORD = r"[A-Za-z0-9_\-]"
_HEX = "[0-9a-f]"
_UUID = rf"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"
_LONGEST = 4096
_OPEN = re.compile(r"\{(\d+),\}")
_B62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Format(Struct, frozen=True):
    """One known format."""

    kind: str
    anchor: str
    """Where to look: an expression for the multi-pattern engine, of bounded length."""
    pattern: re.Pattern[str]
    """The whole secret, matched where the anchor starts."""
    lead: re.Pattern[str] | None
    """What belongs to the secret before its anchor, where the anchor is not its beginning."""
    edge: bool
    """It must not begin within a word."""
    check: Callable[[str], bool]
    """A last look at the match: checksum, decoded content, not a documentation's sample."""


def _plausible(secret: str) -> bool:
    return not is_sample(secret) and entropy(secret[4:]) >= 2.5


def _github(secret: str) -> bool:
    return has_crc(secret) or _plausible(secret)


def has_crc(secret: str) -> bool:
    """Return whether the last six characters are the base-62 CRC-32 of those after the prefix.

    GitHub and npm sign their tokens so; a match proves the format, however dull the token is.
    """
    body = secret.rpartition("_")[2]
    number, digits = zlib.crc32(body[:-6].encode()), ""
    for _ in range(6):
        number, rest = divmod(number, 62)
        digits = _B62[rest] + digits
    return len(body) > 6 and digits == body[-6:]


def _jwt(secret: str) -> bool:
    head = secret.split(".", 1)[0]
    try:
        return b'"' in base64.urlsafe_b64decode(head + "=" * (-len(head) % 4))
    except ValueError:
        return False


def _mixed(secret: str) -> bool:
    body = secret[3:]
    return _plausible(secret) and any(c.isdigit() for c in body) and any(c.isalpha() for c in body)


def _pem(secret: str) -> bool:
    body = secret.partition("KEY")[2].rpartition("END")[0] or secret
    runs = re.findall(r"[A-Za-z0-9+/]{16,}", body)
    return sum(map(len, runs)) >= 40 and "..." not in body and len(set("".join(runs))) > 12


_URL = "https?://(?:[a-z0-9-]{1,40}[.])*"
_PEM_BODY = r"(?:[^-]|-(?!----(?:BEGIN|END)))"


def _format(
    kind: str,
    start: str,
    rest: str,
    *,
    check: Callable[[str], bool] = _plausible,
    edge: bool = False,
    lead: str = "",
) -> Format:
    bounded = _OPEN.sub(rf"{{\1,{_LONGEST}}}", start + rest)
    pattern = re.compile((_EDGE if edge else "") + bounded)
    return Format(kind, start, pattern, re.compile(lead + r"\Z") if lead else None, edge, check)


FORMATS: tuple[Format, ...] = (
    # Code hosts and package registries
    _format("github-token", "gh[pousr]_", rf"{_ALNUM}{{36,255}}", check=_github),
    _format("github-token", "github_pat_", r"[A-Za-z0-9_]{50,255}"),
    _format(
        "gitlab-token",
        r"gl(?:pat|oas|dt|rt|rtr|ptt|ft|imt|agent|cbt|soat|ffct)-",
        rf"{_WORD}{{20,64}}(?:\.[0-9a-z]{{2}}\.[0-9a-z]{{7,12}})?",
    ),
    _format("gitlab-token", "GR1348941", rf"{_WORD}{{20,}}"),
    _format("bitbucket-token", "ATBB", rf"{_ALNUM}{{32}}", check=_mixed, edge=True),
    _format("npm-token", "npm_", rf"{_ALNUM}{{36}}", check=_github),
    _format("pypi-token", "pypi-AgE", rf"{_WORD}{{50,}}"),
    _format("rubygems-token", "rubygems_", rf"{_HEX}{{48}}"),
    _format("cargo-token", f"cio{_ALNUM}{{8}}", f"{_ALNUM}{{24}}\\b", check=_mixed, edge=True),
    _format("nuget-key", "oy2[a-z0-9]{8}", r"[a-z0-9]{35}\b", check=_mixed, edge=True),
    _format("clojars-token", "CLOJARS_[a-z0-9]{4}", "[a-z0-9]{56}"),
    _format("dockerhub-token", "dckr_[po]at_", rf"{_WORD}{{24,40}}"),
    _format("artifactory-key", "AKCp[0-9]", rf"{_ALNUM}{{60,}}", edge=True),
    _format("artifactory-token", "cmVmdGtu", rf"{_ALNUM}{{50,}}", edge=True),
    _format("sonar-token", f"sq[upa]_{_HEX}{{4}}", rf"{_HEX}{{36}}", edge=True),
    _format("buildkite-token", "bk(?:ua|at|ct)_", rf"{_ALNUM}{{36,}}", edge=True),
    _format("circleci-token", "CCI(?:PAT|PRJ)_", r"[A-Za-z0-9_]{40,}"),
    # Clouds
    _format(
        "aws-access-key-id",
        "(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{8}",
        r"[A-Z2-7]{8}(?![A-Za-z0-9])",
        edge=True,
        check=lambda s: not is_sample(s) and len(set(s)) > 7,
    ),
    _format(
        "aws-session-token", "(?:IQoJb3JpZ2lu|FwoGZXIvYXdz|FQoGZXIvYXdz)", r"[A-Za-z0-9+/=_%-]{60,}"
    ),
    _format(
        "aws-bedrock-key", "(?:ABSKQmVkcm9ja0FQSUtleS|bedrock-api-key-)", r"[A-Za-z0-9+/=_-]{60,}"
    ),
    _format("aws-mws-key", r"amzn\.mws\.", _UUID),
    _format("google-api-key", "AIza", rf"{_WORD}{{35}}"),
    _format("google-oauth-secret", "GOCSPX-", rf"{_WORD}{{28}}"),
    _format("google-access-token", r"ya29\.", rf"{_WORD}{{20,}}(?:\.{_WORD}+)*"),
    _format(
        "google-refresh-token", f"1//0{_WORD}{{8}}", rf"{_WORD}{{24,}}", edge=True, check=_mixed
    ),
    _format("google-hmac-key", "GOOG1E", r"[A-Z2-7]{50,}", edge=True),
    _format(
        "azure-client-secret",
        r"[A-Za-z0-9_~.\-]{3}[0-9]Q~[A-Za-z0-9_~.\-]{4}",
        r"[A-Za-z0-9_~.\-]{26,33}",
        check=_mixed,
    ),
    _format("azure-storage-key", r"AccountKey=", r"[A-Za-z0-9+/]{80,}={0,2}"),
    _format(
        "azure-service-key",
        "(?:\\+ASt|AzFu|AzSe|AzCa|ACDb)",
        r"[A-Za-z0-9+/_\-]{5,9}={1,2}",
        lead=r"[A-Za-z0-9+/_\-]{24,88}",
        check=_mixed,
    ),
    _format("azure-openai-key", "JQQJ99", rf"{_ALNUM}{{26}}", lead=rf"{_ALNUM}{{52}}"),
    _format("azure-devops-token", f"AZDO{_ALNUM}{{4}}", r"\b", lead=rf"{_ALNUM}{{76}}"),
    _format(
        "azure-sas",
        r"[?&]s(?:ig|v)=[A-Za-z0-9%+/\-]{4}",
        r"[A-Za-z0-9%+/\-]{0,80}(?:&[a-z]{1,5}=[^&\s\"'<>]{1,120}){2,12}",
        check=lambda s: "sig=" in s,
    ),
    _format("digitalocean-token", "do[opr]_v1_", rf"{_HEX}{{64}}"),
    _format("heroku-key", "HRKU-", rf"{_WORD}{{36,}}"),
    _format(
        "flyio-token",
        "(?:FlyV1 )?f(?:m[12][ar]?|o1)_",
        r"[A-Za-z0-9+/=_\-]{36,}(?:,fm[12][ar]?_[A-Za-z0-9+/=_\-]{36,})*",
        edge=True,
    ),
    _format("alibaba-key", "LTAI", r"[A-Za-z0-9]{12,24}\b", edge=True, check=_mixed),
    _format("tencent-key", f"AKID{_ALNUM}{{8}}", r"[A-Za-z0-9]{24}\b", edge=True, check=_mixed),
    _format("yandex-key", "AQVN", rf"{_WORD}{{35,}}", edge=True, check=_mixed),
    _format("vercel-token", "vc[pkiar]_", rf"{_ALNUM}{{24,}}", edge=True, check=_mixed),
    _format("netlify-token", "nf[pou]_", rf"{_ALNUM}{{36,}}", edge=True),
    _format("render-key", "rnd_", rf"{_ALNUM}{{28,}}", edge=True, check=_mixed),
    _format("cloudflare-key", r"v1\.0-[0-9a-f]{8}", r"[0-9a-f]{16}-[0-9a-f]{100,}", edge=True),
    _format("cloudflare-token", "cf(?:at|ut|k)_", rf"{_ALNUM}{{40,}}", edge=True),
    # Models
    _format("anthropic-key", r"sk-ant-", rf"{_WORD}{{32,}}"),
    _format("openrouter-key", r"sk-or-", rf"(?:v1-)?{_HEX}{{64}}"),
    _format("langfuse-key", r"sk-lf-", rf"{_UUID}"),
    _format("openai-key", r"sk-(?:proj|svcacct|admin|None|service)-", rf"{_WORD}{{32,}}"),
    _format("openai-key", f"sk-{_ALNUM}{{8}}", rf"{_ALNUM}{{12,}}", edge=True, check=_mixed),
    _format(
        "api-key",
        rf"[cf]?sk-{_WORD}{{8}}",
        rf"{_WORD}{{24,}}",
        edge=True,
        check=lambda s: _mixed(s) and entropy(s) >= 3.8,
    ),
    _format(
        "huggingface-token", f"hf_{_ALNUM}{{4}}", rf"{_ALNUM}{{30,36}}(?![A-Za-z0-9])", edge=True
    ),
    _format("huggingface-token", "api_org_", rf"{_ALNUM}{{34}}"),
    _format("groq-key", f"gsk_{_ALNUM}{{4}}", rf"{_ALNUM}{{44,}}"),
    _format("xai-key", f"xai-{_ALNUM}{{4}}", rf"{_ALNUM}{{60,}}"),
    _format("replicate-token", f"r8_{_ALNUM}{{4}}", rf"{_ALNUM}{{33}}", edge=True),
    _format("perplexity-key", "pplx-", rf"{_ALNUM}{{40,}}"),
    _format("nvidia-key", "nvapi-", rf"{_WORD}{{50,}}"),
    _format("together-key", "tgp_v1_", rf"{_WORD}{{32,}}"),
    _format("fireworks-key", f"fw_{_ALNUM}{{4}}", rf"{_ALNUM}{{18,}}", edge=True, check=_mixed),
    _format("langsmith-key", "lsv2_(?:pt|sk)_", r"[0-9a-f]{32}_[0-9a-f]{10}"),
    _format("tavily-key", "tvly-", rf"{_WORD}{{28,}}", edge=True),
    _format("firecrawl-key", "fc-[0-9a-f]{8}", r"[0-9a-f]{24}\b", edge=True),
    _format("e2b-key", "e2b_[0-9a-f]{4}", r"[0-9a-f]{36}", edge=True),
    _format("jina-key", "jina_[0-9a-f]{8}", rf"{_ALNUM}{{40,}}"),
    _format("elevenlabs-key", "sk_[0-9a-f]{8}", r"[0-9a-f]{40}\b", edge=True),
    _format("runpod-key", "rpa_[A-Z0-9]{8}", rf"{_ALNUM}{{30,}}", edge=True),
    _format("wandb-key", "wandb_v1_", rf"{_WORD}{{40,}}"),
    _format("pinecone-key", "pcsk_", rf"{_WORD}{{40,}}", edge=True),
    _format("cohere-key", f"co_{_ALNUM}{{8}}", rf"{_ALNUM}{{32,}}", edge=True, check=_mixed),
    # Money
    _format("stripe-key", "[sr]k_(?:live|test|prod)_", rf"{_ALNUM}{{16,255}}"),
    _format("webhook-secret", "whsec_", r"[A-Za-z0-9+/=]{24,}"),
    _format("square-token", r"sq0(?:atp|csp|idb)-", rf"{_WORD}{{22,}}"),
    _format("square-token", "EAAA[EQl]", rf"{_WORD}{{55,}}", edge=True, check=_mixed),
    _format("braintree-token", r"access_token\$production\$", r"[0-9a-z]{16}\$[0-9a-f]{32}"),
    _format("plaid-token", "access-(?:production|development|sandbox)-", _UUID),
    _format("razorpay-key", "rzp_(?:live|test)_", rf"{_ALNUM}{{14,}}"),
    _format("flutterwave-key", "FLWSECK(?:_TEST)?-", r"[0-9a-zA-Z]{12,}(?:-X)?"),
    _format("easypost-key", "EZ[AT]K[0-9a-f]{4}", rf"{_ALNUM}{{48,}}", edge=True),
    _format("shippo-token", "shippo_(?:live|test)_", r"[0-9a-f]{40}"),
    _format("duffel-token", "duffel_(?:live|test)_", rf"{_WORD}{{40,}}"),
    _format("shopify-token", "shp(?:at|ca|pa|ss|tka|ua)_", rf"{_ALNUM}{{32}}", edge=True),
    # Messages
    _format("slack-token", r"xox[abeoprscd](?:\.xox[bp])?-", r"[A-Za-z0-9\-]{20,}"),
    _format("slack-token", r"xapp-[0-9]-", r"[A-Za-z0-9\-]{40,}"),
    _format(
        "slack-webhook",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/",
        r"[A-Za-z0-9+_\-]{6,}(?:/[A-Za-z0-9+_\-]{6,}){1,3}",
        lead=_URL,
    ),
    _format(
        "discord-webhook",
        r"discord(?:app)?\.com/api/(?:v[0-9]{1,2}/)?webhooks/",
        r"[0-9]{15,22}/[\w-]{50,}",
        lead=_URL,
    ),
    _format(
        "teams-webhook",
        r"webhook\.office\.com/webhookb2/",
        r"[\w@\-]{36,}/IncomingWebhook/[\w/\-]{32,}",
        lead=_URL,
    ),
    _format(
        "zapier-webhook", r"hooks\.zapier\.com/hooks/catch/", r"[0-9]{4,}/[a-z0-9]{5,}/?", lead=_URL
    ),
    _format(
        "discord-token",
        rf"[MNO][A-Za-z0-9]{{23,25}}\.{_WORD}{{6}}\.{_WORD}{{4}}",
        rf"{_WORD}{{23,36}}",
        edge=True,
        check=_mixed,
    ),
    _format(
        "telegram-token",
        r"[0-9]{8,10}:A[A-Za-z0-9_\-]{7}",
        rf"{_WORD}{{26,28}}(?![A-Za-z0-9_-])",
        edge=True,
        check=_mixed,
    ),
    _format("twilio-key", r"SK[0-9a-f]{8}", r"[0-9a-f]{24}(?![0-9a-f])", edge=True),
    _format(
        "sendgrid-key",
        r"SG\.[A-Za-z0-9_\-]{8}",
        r"[A-Za-z0-9_\-]{8,16}\.[A-Za-z0-9_\-]{32,50}",
        edge=True,
    ),
    _format("mailgun-key", r"key-[0-9a-f]{8}", r"[0-9a-f]{24}(?![0-9a-f])", edge=True),
    _format("mailchimp-key", r"[0-9a-f]{32}-us[0-9]", r"[0-9]?\b", edge=True),
    _format("brevo-key", "xkeysib-", r"[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    _format("resend-key", rf"re_{_ALNUM}{{8}}_", rf"{_ALNUM}{{20,}}", edge=True, check=_mixed),
    # Tools
    _format("vault-token", r"hv[sbr]\.", rf"{_WORD}{{24,}}", edge=True),
    _format("terraform-token", rf"{_ALNUM}{{14}}\.atlasv1\.", r"[A-Za-z0-9_\-=]{40,}"),
    _format(
        "doppler-token", r"dp\.(?:pt|st|ct|sa|scim|audit)\.", r"[A-Za-z0-9_.\-]{40,}", edge=True
    ),
    _format("linear-key", "lin_(?:api|oauth)_", rf"{_ALNUM}{{32,}}"),
    _format("notion-token", "ntn_[0-9]{4}", rf"{_ALNUM}{{35,}}", edge=True),
    _format("notion-token", f"secret_{_ALNUM}{{8}}", r"[A-Za-z0-9]{35}\b", edge=True, check=_mixed),
    _format("figma-token", "fig[duo][rh]?_", rf"{_WORD}{{36,}}", edge=True),
    _format("postman-key", "PMAK-", r"[0-9a-f]{24}-[0-9a-f]{34}"),
    _format("newrelic-key", "NR(?:AK|II|IQ|RA|JS|SP)-", rf"{_WORD}{{19,42}}", edge=True),
    _format("grafana-token", "gl(?:sa|c)_", r"[A-Za-z0-9+/=_]{32,}", edge=True),
    _format("grafana-key", "eyJrIjoi", r"[A-Za-z0-9+/=_\-]{50,}"),
    _format("supabase-token", "(?:sbp|sb_secret)_", rf"{_WORD}{{31,}}", edge=True),
    _format("atlassian-token", "AT(?:ATT|CTT|OA|API)[0-9x]", r"[A-Za-z0-9+/=_\-]{60,}", edge=True),
    _format("sentry-token", "sntry[su]_", r"[A-Za-z0-9+/=_\-]{60,}"),
    _format("pulumi-token", "pul-[0-9a-f]{4}", r"[0-9a-f]{36}"),
    _format("airtable-token", rf"pat{_ALNUM}{{14}}\.[0-9a-f]{{4}}", r"[0-9a-f]{60}", edge=True),
    _format("tailscale-key", "tskey-", r"[a-z]{2,12}-[A-Za-z0-9]{6,}(?:-[A-Za-z0-9]{16,})?"),
    _format("planetscale-token", "pscale_(?:tkn|pw|oauth)_", r"[A-Za-z0-9_.\-=]{32,}"),
    _format("age-key", "AGE-SECRET-KEY-1", r"[02-9AC-HJ-NP-Za-z]{50,60}"),
    _format("databricks-token", "dapi[0-9a-f]{8}", r"[0-9a-f]{24}(?:-\d)?(?![0-9a-f])", edge=True),
    _format("databricks-token", "dose[0-9a-f]{8}", r"[0-9a-f]{24}(?![0-9a-f])", edge=True),
    _format("dynatrace-token", r"dt0[cs][0-9]{2}\.[A-Z0-9]{8}", r"[A-Z0-9]{16}\.[A-Z0-9]{64}"),
    _format("okta-token", f"SSWS 00{_WORD}{{4}}", rf"{_WORD}{{34,}}"),
    _format("onepassword-token", "ops_eyJ", r"[A-Za-z0-9+/=_\-]{100,}"),
    _format("onepassword-key", r"A3-[A-Z0-9]{6}-", r"[A-Z0-9]{6}(?:-[A-Z0-9]{5}){4}\b", edge=True),
    _format("openshift-token", "sha256~", rf"{_WORD}{{43}}"),
    _format("hubspot-token", "pat-(?:na|eu|ap)[0-9]-", _UUID, edge=True),
    _format("mapbox-token", r"(?:sk|tk)\.eyJ", rf"{_WORD}{{40,}}\.{_WORD}{{20,}}", edge=True),
    _format("contentful-token", "CFPAT-", rf"{_WORD}{{40,}}"),
    _format("typeform-token", "tfp_", r"[A-Za-z0-9_.\-=]{40,}", edge=True),
    _format("posthog-key", "phx_", rf"{_ALNUM}{{40,}}", edge=True),
    _format("prefect-key", "pn[ub]_", rf"{_ALNUM}{{36,}}", edge=True, check=_mixed),
    _format("frameio-token", "fio-u-", rf"{_WORD}{{60,}}"),
    _format(
        "harness-token",
        r"(?:pat|sat)\.[A-Za-z0-9_\-]{22}\.",
        rf"{_ALNUM}{{24}}\.{_ALNUM}{{20}}",
        edge=True,
    ),
    _format("readme-key", "rdme_", r"[a-z0-9]{60,}"),
    _format("infracost-key", f"ico-{_ALNUM}{{8}}", rf"{_ALNUM}{{24}}\b", edge=True, check=_mixed),
    _format("clickup-token", "pk_[0-9]{6,9}_", r"[A-Z0-9]{32}", edge=True),
    _format(
        "facebook-token",
        "EAA[A-Z][A-Za-z0-9]{8}",
        rf"{_ALNUM}{{80,300}}(?![A-Za-z0-9+/=])",
        edge=True,
        check=lambda s: _mixed(s) and "AAA" not in s[4:],
    ),
    _format("pinterest-token", "pina_", rf"{_ALNUM}{{32,}}", edge=True, check=_mixed),
    # Tokens and keys of no one vendor
    _format(
        "private-key",
        "-----BEGIN [A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)?-----",
        rf"(?:{_PEM_BODY}{{40,20000}}-----END [A-Z0-9 ]{{0,24}}PRIVATE KEY(?: BLOCK)?-----"
        r"|(?:(?:\s|\\[nr])*[+ -]?[A-Za-z0-9+/=]{32,80}(?=[\s\\\"']|\Z))+)",
        check=_pem,
    ),
    _format(
        "private-key",
        "PuTTY-User-Key-File-[23]:",
        r"(?:[^P]|P(?!rivate-(?:Hash|MAC|Lines)|uTTY-User-Key)){20,20000}Private-Lines: \d+\r?\n"
        r"[A-Za-z0-9+/=\r\n]+",
        check=_pem,
    ),
    _format(
        "jwt",
        r"eyJ[A-Za-z0-9_\-]{8}",
        r"[A-Za-z0-9_\-]{4,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{16,}(?:\.[A-Za-z0-9_\-]+){0,2}",
        check=_jwt,
    ),
)
