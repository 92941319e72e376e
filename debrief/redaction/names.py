"""What a name says about its value: ``DB_PASSWORD``, ``x-api-key``, ``max_tokens``."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from debrief.redaction.plausibility import words

NameClass = Literal["password", "secret", "auth", "key", ""]
"""What a value under a name may be: a password, a generated secret, base64 of ``user:password``,
or a key of which only the value itself can return whether it is secret."""

KEYWORDS = (
    r"pass(?:w|phr|code|\b)|pwd?\b|pw[_\-]|pwd|kennwort|senha|contrase|mot_?de_?passe|secret|"
    r"token(?:\b|[_\-0-9])|key(?:\b|[_\-0-9])|cred(?:s|ential|\b)|auth\b|bearer|jwt|[_\-]pat\b|"
    r"salt\b|connection_?string"
)
"""Parts of names that may introduce a secret, as one caseless expression for the prefilter."""

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_PASSWORD = words(
    """
    adminpassword authpassword contrasena dbpass dbpassword kennwort motdepasse mypassword
    mysqlpwd passcode passphrase passwd password passwords passwort pgpassword pswd
    rootpassword senha smtppassword sshpass userpass
    """
)
_PASS = frozenset({"pass", "pw", "pwd"})
_SECRET = words(
    """
    accesskey accesstoken apikey apitoken appsecret authkey authtoken bearer bottoken
    clientsecret cred credential credentials creds encryptionkey idtoken jwtsecret masterkey
    patoken privatekey refreshtoken secret secretkey secrets servicekey sessionsecret signingkey
    usertoken
    """
)
_WEAK_SECRET = words(
    """
    jwt pat salt token
    """
)
_KEY_OF = words(
    """
    access account admin aes api app application auth authentication authorization bot cipher
    client consumer cookie crypt crypto deploy derivation enc encrypt encryption hash hmac
    ingest ingestion integration jwt licence license master org private project registry root
    salt secret server service session shared sign signature signing ssh ssl storage
    subscription team tls user webhook
    """
)
_HARMLESS_LAST = words(
    """
    age alg algorithm arn at audience budget button chain checksum class column columns comment
    confirm confirmation cost count counts created date decoder description digest dir disabled
    doc docs enabled encoder endpoint env error errors example examples exp expiration expire
    expires expiry field fields file filename files fingerprint folder form format hash hashed
    hasher hashes header headers hint id ids idx index input issuer kid label labels len length
    limit limits list manager map max message messages min mode model models msg name names
    optional page pair pairs param params parser path paths pattern policy prefix price prompt
    provider rate re ref reference regex required reset ring rule rules schema scope scopes
    service size state status store stream strength suffix table test tests text time title ttl
    type types updated uri url usage used valid validator var variable version versions window
    """
)
_HARMLESS = words(
    """
    bos cache check continuation count csrf cursor dedup design end eos etag foreign forgot
    idempotency keyboard lexer mask max min next nonce num number object ordering pad page
    pagination partition placeholder prev previous primary pub public publishable resume routing
    row separator shortcut sort special start stop sync syntax tokenize tokenizer tokens total
    unique unk verify xsrf
    """
)


@lru_cache(maxsize=8192)
def class_of(name: str) -> NameClass:
    """Return what the value of ``name`` may be; empty when the name speaks of no secret."""
    parts = [part.lower() for part in _PART.findall(name)]
    terms = [part for part in parts if not part.isdigit()]
    if not terms:
        return ""
    last = terms[-1]
    if last in _HARMLESS_LAST or any(word in _HARMLESS for word in terms):
        return ""
    joined = "".join(terms)
    if any(word in _PASSWORD for word in terms) or joined in _PASSWORD or last in _PASS:
        return "password"
    if any(word in _SECRET for word in terms) or joined in _SECRET:
        return "secret"
    if last.endswith(("password", "passwd")):
        return "password"
    if last.endswith(("secret", "apikey", "token")) and last not in _WEAK_SECRET:
        return "secret"
    for before, term in pairwise(terms):
        if term in ("key", "keys") and before in _KEY_OF:
            return "secret"
    if any(word in _WEAK_SECRET for word in terms):
        return "secret"
    if last in ("auth", "_auth"):
        return "auth"
    return "key" if last == "key" and len(terms) > 1 else ""


@lru_cache(maxsize=2048)
def kind_of(name: str) -> str:
    """Return the kind of secret that a name promises, for the placeholder."""
    parts = {part.lower() for part in _PART.findall(name)}
    if class_of(name) == "password":
        return "password"
    if "aws" in parts and "secret" in parts:
        return "aws-secret-key"
    for part, kind in (
        ("session", "session-token"),
        ("token", "token"),
        ("private", "private-key"),
        ("key", "api-key"),
        ("apikey", "api-key"),
        ("secret", "secret"),
    ):
        if part in parts:
            return kind
    return "secret"
