"""Secrets that nobody ever issued, made at run time, in places where people leave secrets.

The generator knows the formats from their documentation and shares no table with the rules, so
that a rule that is wrong shows. Prefixes are put together here, so that no scanner takes this
file for a leak.
"""

from __future__ import annotations

import base64
import json
import random
import re
import string
import urllib.parse
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

ALNUM = string.ascii_letters + string.digits
URL_SAFE = ALNUM + "-_"
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits
BASE32 = string.ascii_uppercase + "234567"


@dataclass(frozen=True)
class Case:
    """A text, and the parts of it that have to go; none for a near-miss."""

    split: str
    kind: str
    text: str
    secrets: tuple[str, ...] = field(default=())


class Maker:
    """Makes cases from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def of(self, alphabet: str, length: int) -> str:
        return "".join(self.random.choices(alphabet, k=length))

    def uuid(self) -> str:
        return "-".join(self.of(HEX, n) for n in (8, 4, 4, 4, 12))

    def pick(self, *options: str) -> str:
        return self.random.choice(options)

    def github(self) -> str:
        body = self.of(ALNUM, 30)
        number, sign = zlib.crc32(body.encode()), ""
        for _ in range(6):
            number, rest = divmod(number, 62)
            sign = (string.digits + string.ascii_uppercase + string.ascii_lowercase)[rest] + sign
        return "gh" + self.pick("p", "o", "u", "s", "r") + "_" + body + sign

    def jwt(self) -> str:
        def part(value: object) -> str:
            return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

        claims = {"sub": self.of(HEX, 12), "exp": self.random.randrange(10**9, 2 * 10**9)}
        return f"{part({'alg': 'RS256', 'kid': self.of(HEX, 6)})}.{part(claims)}.{self.of(URL_SAFE, 86)}"

    def pem(self) -> str:
        label = self.pick("RSA ", "EC ", "OPENSSH ", "", "ENCRYPTED ", "DSA ")
        rows = [self.of(ALNUM + "+/", 64) for _ in range(self.random.randrange(3, 20))]
        body = "\n".join([*rows, self.of(ALNUM, 22) + "=="])
        return f"-----BEGIN {label}PRIVATE KEY-----\n{body}\n-----END {label}PRIVATE KEY-----"

    def password(self) -> str:
        length = self.random.randrange(10, 24)
        while True:
            value = self.of(ALNUM + "!#%*^?@_-", length)
            kinds = [any(map(kind, value)) for kind in (str.isdigit, str.islower, str.isupper)]
            if all(kinds) and (value[0] + value[-1]).isalnum() and "@" not in value:
                return value

    def token(self) -> str:
        return self.of(*self.random.choice([(ALNUM, 32), (HEX, 40), (URL_SAFE, 43), (HEX, 64)]))


_ALPHABETS = {
    **{"a": ALNUM, "u": URL_SAFE, "h": HEX, "d": string.digits, "l": string.ascii_letters},
    **{
        "U": UPPER,
        "b": BASE32,
        "s": ALNUM + "/+",
        "n": "123456789",
        "t": ALNUM + "_.-",
        "v": string.digits + string.ascii_lowercase,
    },
}
_FORMS = """
github-fine    github|_pat_{a22}_{a59}
gitlab         gl|{pat,dt,rt,ptt,cbt}-{u20}
npm            npm|_{a36}
pypi           pypi|-AgEIcHlwaS5vcmc{u150}
aws-id         AK|IA{b16}
aws-secret     {s40}
google         AI|za{u35}
google-oauth   GOC|SPX-{u28}
google-access  ya|29.{u120}
azure-ad       {a3}8Q~{t34}
anthropic      sk-|ant-{api03,admin01,oat01,ort01}-{u93}AA
openai         sk-|proj-{u74}T3Blbk|FJ{u74}
openai-old     sk|-{a20}T3Blbk|FJ{a20}
openrouter     sk-|or-v1-{h64}
langfuse       sk-|lf-{uuid}
huggingface    hf|_{l34}
groq           gsk|_{a52}
xai            xai|-{a80}
phoenix        SFM|yNTY.{u110}.{u43}
nvidia         nv|api-{u64}
replicate      r8|_{a37}
slack          xox|{b,p,a}-{d12}-{d13}-{a24}
slack-hook     https://hooks.|slack.com/services/T{U9}/B{U10}/{a24}
discord-hook   https://disc|ord.com/api/webhooks/{d18}/{u68}
telegram       {n10}:AA{u33}
stripe         {sk,rk}_{live,test}_{a24}
stripe-hook    whsec|_{a32}
square         sq0|atp-{u22}
shopify        shp|{at,ca,pa,ss}_{h32}
sendgrid       SG|.{u22}.{u43}
twilio         S|K{h32}
mailgun        key|-{h32}
mailchimp      {h32}-us{1,14,21}
digitalocean   dop|_v1_{h64}
databricks     da|pi{h32}
vault          hv|s.{u90}
terraform      {a14}.atlas|v1.{u67}
doppler        dp|.pt.{a43}
linear         lin|_api_{a40}
notion         ntn|_{d11}{a35}
figma          fig|d_{u40}
postman        PM|AK-{h24}-{h34}
grafana        gl|sa_{a32}_{h8}
supabase       sb|p_{h40}
sentry         sntr|yu_{h64}
pulumi         pul|-{h40}
airtable       pat{a14}.{h64}
tailscale      ts|key-auth-{a16}-{a32}
planetscale    pscale|_tkn_{u43}
dynatrace      dt0|c01.{b24}.{b64}
hubspot        pat|-na1-{uuid}
dockerhub      dckr|_pat_{u27}
rubygems       ruby|gems_{h48}
square-access  EA|AA{a1}{u59}
packagist      pack|agist_uut_{h64}
sourcegraph    sg|p_{h16}_{h40}
octopus        AP|I-{U26}
neon           na|pi_{a64}
apify          apify|_api_{a36}
onesignal      os_|v2_app_{v103}
mailersend     ml|sn.{h64}
linkedin       WPL|_AP1.{a16}.{a6}==
xendit         xnd|_production_{a48}
polar          polar|_oat_{a43}
brex           bx|t_{a36}
confluent      cf|lt{s60}
aiven          AV|NS_{a19}
google-ai      AQ|.Ab{u50}
llamacloud     ll|x-{a48}
voyage         p|a-{u43}
axiom          xa|at-{uuid}
honeycomb      hc|aik_01{v56}
launchdarkly   sd|k-{uuid}
dbt            db|tu_{u36}
infisical      st|.{h24}.{h32}.{h32}
swarm          SWM|TKN-1-{v50}-{v25}
mattermost     https://chat.acme.in|valid/hooks/{v26}
feishu         https://open.fei|shu.cn/open-apis/bot/v2/hook/{uuid}
wecom          https://qyapi.weixin.|qq.com/cgi-bin/webhook/send?key={uuid}
google-chat    https://chat.google|apis.com/v1/spaces/{a11}/messages?key=x&token={u43}
make-hook      https://hook.eu1.|make.com/{v32}
ifttt          https://maker.if|ttt.com/trigger/door/with/key/{u22}
kaggle         KG|AT_{h32}
bitwarden      0.{uuid}.{a30}:{s22}==
twitter        AAAAAAAAAAAA|AAAAAAAAAA{a80}
"""
"""By kind: characters of an alphabet and their number, or one of several words, in braces; a bar
is nothing, and keeps scanners from taking this file for a leak."""


def _made(form: str) -> Callable[[Maker], str]:
    def part(make: Maker, found: re.Match[str]) -> str:
        if found[1] == "uuid":
            return make.uuid()
        if "," in found[1]:
            return make.pick(*found[1].split(","))
        return make.of(_ALPHABETS[found[1][0]], int(found[1][1:]))

    return lambda make: re.sub(r"\{([^}]+)\}", partial(part, make), form.replace("|", ""))


KNOWN: dict[str, Callable[[Maker], str]] = {
    "github": Maker.github,
    **{kind: _made(form) for kind, form in map(str.split, _FORMS.strip().splitlines())},
    "azure-storage": lambda m: base64.b64encode(m.random.randbytes(64)).decode(),
    "jwt": Maker.jwt,
    "pem": Maker.pem,
}

_NEED_NAME = {"aws-secret": "AWS_SECRET_ACCESS_KEY", "azure-storage": "AZURE_STORAGE_KEY"}

_PLACES: tuple[Callable[[Maker, str, str], str], ...] = (
    lambda m, n, s: f"{n}={s}\n",
    lambda m, n, s: f"export {n}='{s}'\nmake deploy\n",
    lambda m, n, s: f'{n.lower()}: "{s}"  # rotate in {m.pick("May", "June")}\n',
    lambda m, n, s: json.dumps({"kind": "service", "settings": {n: s, "retries": 3}}),
    lambda m, n, s: json.dumps({"tool": "Bash", "out": json.dumps({n: s})}),
    lambda m, n, s: f"const {n} = `{s}`;\nmodule.exports = client;\n",
    lambda m, n, s: f"@@ -4,2 +4,2 @@\n timeout = 3\n-{n} = None\n+{n} = '{s}'\n",
    lambda m, n, s: f"ENV {n}={s}\nRUN npm ci\n",
    lambda m, n, s: f"  12\u2192{n} = {s}\n  13\u2192\n",
    lambda m, n, s: f"$ heroku config:set {n}={s} --app shop\nSetting {n}... done\n",
    lambda m, n, s: f"[default]\n{n.lower()} = {s}\nregion = eu-central-1\n",
)
_BARE_PLACES: tuple[Callable[[Maker, str], str], ...] = (
    lambda m, s: f"could you use {s} for the staging box?\n",
    lambda m, s: f"curl -sS https://api.invalid/v2/items -H 'X-Custom: {s}'\n",
    lambda m, s: f"Error: request failed (credential {s}), giving up\n",
    lambda m, s: f"<p>token</p><code>{s}</code>\n",
    lambda m, s: f"[2026-03-01 10:00:01] DEBUG auth using {s}\n",
)

GENERIC: tuple[tuple[str, Callable[[Maker, str], str]], ...] = (
    ("password", lambda m, s: f"DB_PASS={s}\n"),
    ("password", lambda m, s: f"spring.datasource.password={s}\n"),
    ("password", lambda m, s: f'"adminPassword": "{s}",\n'),
    ("password", lambda m, s: f'$env:SQL_PWD = "{s}"\n'),
    ("password", lambda m, s: f"auth:\n  username: svc\n  password: '{s}'\n"),
    ("password", lambda m, s: f"create user app with password '{s}';\n"),
    ("password", lambda m, s: f"ALTER USER app IDENTIFIED BY '{s}';\n"),
    ("password", lambda m, s: f"conn = connect(host, user='root', passwd='{s}')\n"),
    ("password", lambda m, s: f"the root password is {s} , please keep it\n"),
    ("password", lambda m, s: f"User: login with password: {s}\n"),
    ("password", lambda m, s: f"postgres://svc:{s}@10.0.0.7:5432/shop\n"),
    ("password", lambda m, s: f"mongodb+srv://svc:{s}@cluster0.invalid/db\n"),
    ("password", lambda m, s: f"smtp://mailer:{s}@mail.invalid:587\n"),
    ("password", lambda m, s: f"git remote add up https://bot:{s}@git.invalid/a/b.git\n"),
    ("password", lambda m, s: f"$ mysqldump -h db -u root -p{s} shop > x.sql\n"),
    ("password", lambda m, s: f"$ curl --user svc:{s} https://x.invalid\n"),
    ("password", lambda m, s: f"$ sshpass -p '{s}' ssh root@x.invalid\n"),
    ("password", lambda m, s: f"$ docker login -u bot -p {s} reg.invalid\n"),
    ("password", lambda m, s: f"$ ./deploy --password {s} --yes\n"),
    ("password", lambda m, s: f"$ PGPASSWORD='{s}' psql -U app\n"),
    ("password", lambda m, s: f"echo '{s}' | sudo -S systemctl restart app\n"),
    ("password", lambda m, s: f"machine x.invalid login bot password {s}\n"),
    ("password", lambda m, s: f"db.invalid:5432:shop:app:{s}\n"),
    ("password", lambda m, s: f"Data Source=x;User ID=sa;Password={s};Encrypt=True\n"),
    ("password", lambda m, s: f"<password>{s}</password>\n"),
    ("password", lambda m, s: f"- name: DB_PASSWORD\n  value: {s}\n"),
    ("password", lambda m, s: json.dumps({"name": "SMTP_PASSWORD", "value": s})),
    ("password", lambda m, s: json.dumps(["deploy", "--password", s, "--force"])),
    ("token", lambda m, s: f"Authorization: Bearer {s}\n"),
    ("token", lambda m, s: f"-H 'Authorization: token {s}'\n"),
    ("token", lambda m, s: f"X-Auth-Token: {s}\n"),
    ("token", lambda m, s: f"PRIVATE-TOKEN: {s}\n"),
    ("token", lambda m, s: f"https://api.invalid/x?access_token={s}&limit=3\n"),
    ("token", lambda m, s: f"apiKey: '{s}',\n"),
    ("token", lambda m, s: f'let client = Client::new().api_key("{s}");\n'),
    ("token", lambda m, s: f'os.environ["SERVICE_TOKEN"] = "{s}"\n'),
    ("token", lambda m, s: f"setenv('ENCRYPTION_KEY', '{s}')\n"),
    ("token", lambda m, s: f"signing_key = b'{s}'\n"),
    ("token", lambda m, s: f"JWT_SECRET={s}\n"),
    ("token", lambda m, s: f"//npm.invalid/:_authToken={s}\n"),
    ("token", lambda m, s: f"Set-Cookie: connect.sid={s}; Path=/\n"),
    ("token", lambda m, s: f'<meta name="csrf-token" content="{s}"/>\n'),
    ("token", lambda m, s: f"$ ./sync --api-key={s} --dry-run\n"),
    ("token", lambda m, s: f"$ ./sync --token {s}\n"),
    ("token", lambda m, s: json.dumps({"oauth": {"client_secret": s, "client_id": "web"}})),
    ("basic", lambda m, s: f"Authorization: Basic {s}\n"),
    ("basic", lambda m, s: json.dumps({"auths": {"reg.invalid": {"auth": s}}})),
)

_SPLITTABLE = (
    "github", "npm", "google", "anthropic", "openai", "openrouter", "langfuse", "huggingface",
    "slack", "stripe", "digitalocean", "gitlab", "groq", "supabase",
)  # fmt: skip


def known_cases(seed: int, each: int = 4) -> Iterator[Case]:
    """Yield secrets of known formats in places of many kinds."""
    make = Maker(seed)
    for kind, build in KNOWN.items():
        for _ in range(each):
            secret = build(make)
            name = _NEED_NAME.get(kind) or kind.upper().replace("-", "_") + "_VALUE"
            if "\n" in secret:
                text = make.pick(f"$ cat key\n{secret}\n", f"KEY='{secret}'\n", f"{secret}\n")
            elif kind in _NEED_NAME or make.random.random() < 0.6:
                text = make.random.choice(_PLACES)(make, name, secret)
            else:
                text = make.random.choice(_BARE_PLACES)(make, secret)
            yield Case("known", kind, text, (secret,))


def generic_cases(seed: int, each: int = 5) -> Iterator[Case]:
    """Yield passwords and keys without a format, given away by what stands beside them."""
    make = Maker(seed)
    for kind, place in GENERIC:
        for _ in range(each):
            if kind == "password":
                secret = make.password()
            elif kind == "token":
                secret = make.token()
            else:
                secret = base64.b64encode(f"svc:{make.password()}".encode()).decode()
            text = place(make, secret)
            yield Case("generic", kind, text, (secret,))


CONTEXTS = (Path(__file__).parent / "contexts.txt").read_text("utf-8").splitlines()


_SPOKEN = [
    "violet",
    "tractor",
    "ocean",
    "tunnel",
    "garlic",
    "marble",
    "candle",
    "winter",
    "forest",
    "silver",
    "rocket",
    "anchor",
    "pepper",
    "saddle",
    "copper",
    "magnet",
    "puzzle",
    "orchard",
    "lantern",
    "velvet",
    "thunder",
    "cabin",
    "meadow",
]


def context_cases(seed: int, each: int = 2) -> Iterator[Case]:
    """Yield secrets without a format where tools' manuals and people put them."""
    make = Maker(seed)
    section = ""
    for line in CONTEXTS:
        if line.startswith("# "):
            section = line[2:].partition(":")[0]
            continue
        for _ in range(each):
            values = {
                "p": make.pick(make.password(), make.of(ALNUM, 9) + "7kQ"),
                "t": make.token(),
                "b": base64.b64encode(f"svc:{make.password()}".encode()).decode(),
                "s": make.of(ALNUM + "!@#$%^&*()-_[]{}~+=,.;:/?|", 63) + "k",
                "w": f"{'-'.join(make.random.sample(_SPOKEN, 3))}-{make.of('123456789', 2)}",
                "m": " ".join(make.random.sample(_SPOKEN, 12)),
                "x": make.of(HEX, 32),
                "l": make.of(HEX, 64),
                "i": make.of(ALNUM + "/+", 40),
                "k": make.of(ALNUM, 26),
                "v": make.of(HEX, 26),
                "T": make.of(URL_SAFE, 35),
                "U": make.uuid(),
                "u": make.pick("bob", "svc_shop", "anna", "deploy"),
                "h": make.pick("db.invalid", "10.2.0.9"),
            }
            text = line.replace("\\n", "\n").replace("\\t", "\t")
            for name, value in values.items():
                text = text.replace(f"{{{name}}}", value)
            secrets = tuple(
                value
                for name, value in values.items()
                if name not in "uh" and f"{{{name}}}" in line
            )
            yield Case(section, line, text + "\n", secrets)


def hard_cases(seed: int, each: int = 2) -> Iterator[Case]:
    """Yield secrets that are encoded, escaped, or broken in two."""
    make = Maker(seed)
    for kind in _SPLITTABLE:
        for _ in range(each):
            yield from _hard(make, kind)


def _hard(make: Maker, kind: str) -> Iterator[Case]:
    build = KNOWN[kind]
    secret = build(make)
    blob = base64.b64encode(f"A=1\nKEY={secret}\nB={make.of(HEX, 4)}".encode()).decode()
    yield Case("hard", "base64", f"ENV_FILE={blob}\n", (blob,))
    blob = base64.b64encode(build(make).encode()).decode()
    yield Case("hard", "k8s", f"data:\n  value: {blob}\n", (blob,))
    blob = build(make).encode().hex()
    yield Case("hard", "hex", f"payload 0x{blob} sent\n", (blob,))
    secret = build(make)
    quoted = secret.replace("-", "%2D").replace("_", "%5F")
    yield Case("hard", "url", f"https://x.invalid/cb?k={quoted}&v=1\n", (quoted,))
    secret = build(make)
    escaped = secret.replace("-", "\\u002d").replace("_", "\\u005f")
    yield Case("hard", "unicode", f'{{"log": "key {escaped}"}}\n', (escaped,))
    secret = build(make)
    cut = make.random.randrange(len(secret) // 3, len(secret) - 8)
    head, tail = secret[:cut], secret[cut:]
    yield Case("hard", "ansi", f"K=\x1b[32m{head}\x1b[0m\x1b[1m{tail}\x1b[0m\n", (head, tail))
    yield Case("hard", "wrapped", f"$ printenv K\n{head}\n{tail}\n$ \n", (head, tail))
    operator = make.pick(" + ", " \\\n    ", " . ", "\n  ", " +\n      ")
    yield Case("hard", "split", f"key = '{head}'{operator}'{tail}'\n", (tail,))
    pieces = [{"type": "content_block_delta", "index": 1,
               "delta": {"type": "input_json_delta", "partial_json": piece}}
              for piece in (f'{{\\"k\\": \\"{head}', tail)]  # fmt: skip
    stream = "".join(f"data: {json.dumps(piece)}\n\n" for piece in pieces)
    yield Case("hard", "deltas", stream, (head, tail))
    yield Case("hard", "glued", f"backup_{secret}_{make.pick('old', 'x')}\n", (secret,))
    deep = json.dumps(json.dumps({"a": json.dumps({"content": f"line\nTOKEN={secret}\n"})}))
    yield Case("hard", "nested", deep, (secret,))
    dashed = secret.replace("-", "&#45;")
    yield Case("hard", "entities", f"<td>{dashed}</td>", (dashed,))
    twice = urllib.parse.quote(quoted)
    yield Case("hard", "url-twice", f"r={twice}&x=1\n", (twice,))


ESCAPES: dict[str, Callable[[str], str]] = {
    "url": lambda char: f"%{ord(char):02X}",
    "url twice": lambda char: f"%25{ord(char):02X}",
    "json": lambda char: f"\\u{ord(char):04x}",
    "json in json": lambda char: f"\\\\u{ord(char):04x}",
    "hex": lambda char: f"\\x{ord(char):02x}",
    "octal": lambda char: f"\\{ord(char):03o}",
    "entity": lambda char: f"&#{ord(char)};",
    "hex entity": lambda char: f"&#x{ord(char):x};",
    "named entity": lambda char: {'"': "&quot;", "=": "&equals;", " ": "&nbsp;"}.get(
        char, f"&#{ord(char)};"
    ),
    "quoted-printable": lambda char: f"={ord(char):02X}",
    "colour": lambda char: f"{char}\x1b[1;32m",
    "written colour": lambda char: f"{char}\\u001b[0m",
    "invisible": lambda char: f"{char}\u200b",
    "soft line break": lambda char: f"{char}=\n",
}
"""Spellings of one character, with what may stand behind it."""


def escaped_cases(seed: int, each: int = 1) -> Iterator[Case]:
    """Yield each known format behind, with, and before each spelling of a character."""
    make = Maker(seed)
    for kind, build in KNOWN.items():
        if kind in _NEED_NAME:
            continue
        for name, escape in ESCAPES.items():
            for _ in range(each):
                secret = build(make)
                char = make.pick("=", '"', " ")
                before = f"curl -d key={escape(char)}{secret} x"
                yield Case(f"before {name}", kind, before, (secret,))
                yield Case(f"after {name}", kind, f"got {secret}{escape(char)}more", (secret,))
                if "\n" in secret:
                    continue
                at = make.random.randrange(1, len(secret) - 1)
                inside = secret[:at] + escape(secret[at]) + secret[at + 1 :]
                yield Case(f"inside {name}", kind, f"got {inside}\n", (inside,))


def coverage(text: str, secret: str, spans: list[tuple[int, int]]) -> float:
    """Return the share of a secret's characters, line breaks aside, that spans cover."""
    at = text.find(secret)
    if at < 0:
        secret = json.dumps(secret)[1:-1]
        at = text.find(secret)
    assert at >= 0, "the case does not hold its secret"
    covered = bytearray(len(text))
    for start, end in spans:
        covered[start:end] = b"\1" * (end - start)
    places = [at + place.start() for place in re.finditer(r"(?!=\n)[^\n]", secret)]
    return sum(covered[place] for place in places) / len(places)
