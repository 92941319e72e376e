"""What looks like a secret and is none: digests, ids, placeholders, code."""

from __future__ import annotations

import base64
from collections.abc import Iterator

from tests.redaction.synthetic import ALNUM, HEX, Case, Maker


def near_misses(seed: int, each: int = 3) -> Iterator[Case]:
    """Yield what looks like a secret and is none."""
    make = Maker(seed)
    for _ in range(each):
        for text in _harmless(make):
            yield Case("near-miss", "", text)


def _harmless(make: Maker) -> Iterator[str]:
    sha = make.of(HEX, 40)
    digest = make.of(HEX, 64)
    noise = base64.b64encode(make.random.randbytes(300)).decode()
    yield f"Merge commit {sha} into main\n"
    yield f"git checkout {sha[:12]} && git show {sha}:src/auth/token.py\n"
    yield f"sha256 = {digest}\n"
    yield f'"checksum": "{digest}", "etag": "{make.of(HEX, 32)}"\n'
    yield f'"integrity": "sha512-{base64.b64encode(make.random.randbytes(64)).decode()}"\n'
    yield f'{{"session_id": "{make.uuid()}", "request_id": "req_{make.of(ALNUM, 24)}"}}\n'
    yield f'{{"tool_use_id": "toolu_{make.of(ALNUM, 24)}", "next_page_token": "{make.of(ALNUM, 40)}"}}\n'
    yield f'{{"type": "thinking", "signature": "{noise}"}}\n'
    yield f"data:image/png;base64,iVBORw0KGgo{noise}\n"
    yield f"-----BEGIN CERTIFICATE-----\n{noise}\n-----END CERTIFICATE-----\n"
    yield f"ssh-rsa {'AAAAB3NzaC1yc2EAAAADAQABAAAB'}{make.of(ALNUM, 200)} me@host\n"
    yield f"pk-lf-{make.uuid()} is the public key\n"
    yield "OPENAI_API_KEY=sk-your-key-here\n"
    yield "ANTHROPIC_API_KEY=sk-ant-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n"
    yield "GITHUB_TOKEN=ghp_****************************\n"
    yield "export GITHUB_TOKEN=$(gh auth token)\n"
    yield "token: ${{ secrets.GITHUB_TOKEN }}\n"
    yield "password = os.environ['DB_PASSWORD']\n"
    yield "password: process.env.DB_PASSWORD,\n"
    yield 'api_key: str = Field(default="", description="the key")\n'
    yield "const token = await getAccessToken(userId2, { refresh: true });\n"
    yield "self.password_hasher = PasswordHasher2id(time_cost=3)\n"
    yield "max_tokens=4096, token_count=128000, tokenizer='o200k_base'\n"
    yield "def reset_password(self, token: PasswordResetTokenV2) -> None:\n"
    yield "password = 'password123'\n"
    yield "POSTGRES_PASSWORD=postgres\n"
    yield "postgres://user:password@localhost/db\n"
    yield "amqp://guest:guest@rabbitmq:5672//\n"
    yield "redis://cache.internal:6379/2\n"
    yield "http://localhost:8080@v2/path\n"
    yield "secret_name = projects/shop/secrets/db-password/versions/3\n"
    yield "secretKeyRef: {name: db-credentials-v2, key: password}\n"
    yield "<input type='password' id='login-password-2' autocomplete='current-password'>\n"
    yield "the token is stored in ~/.config/shop/credentials.json\n"
    yield "Authorization: Bearer <token>\n"
    yield "Authorization: Bearer ${ACCESS_TOKEN}\n"
    yield "curl -u $USER:$PASSWORD https://x.invalid\n"
    yield "docker run -p 8080:80 -u 1000:1000 img\n"
    yield "mysql -u root -p shop\n"
    yield "The access key: see the vault, entry 4711-B.\n"
    yield "key = lambda item: (item.start, item.name)\n"
    yield "cache_key = f'user:{user_id}:profile:v3'\n"
    yield "primary_key=True, foreign_key='orders.customer_id2'\n"
    yield f"idempotency_key = '{make.uuid()}'\n"
    yield f"resource id {make.uuid()} and trace {make.of(HEX, 32)}\n"
    yield f"pod/api-{make.of('bcdfghjklmnpqrstvwxz2456789', 10)}-{make.of(HEX, 5)} Running\n"
    yield f"blob {make.of(HEX, 7)}..{make.of(HEX, 7)} 100644\n"
    yield "assert response.json()['token'] == expected_token_2\n"
    yield "it('hashes the password with bcrypt2b', async () => {\n"
    yield "kubectl create secret generic db --from-literal=password=$DB_PASS\n"
    yield "PASSWORD_MIN_LENGTH = 12; PASSWORD_REGEX = r'^(?=.*[A-Z])(?=.*\\d).{12,}$'\n"
    yield "--- PASS: TestSessionToken_Refresh2 (0.02s)\n"
    yield "from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC\n"
    yield "if '-----BEGIN PRIVATE KEY-----' in text: raise ValueError('key')\n"
    yield "-----BEGIN RSA PRIVATE KEY-----\n...\n-----END RSA PRIVATE KEY-----\n"
    yield "password <secret:password:3f9a1c> stays\n"
