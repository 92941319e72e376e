---
title: Read carrier tokens and bucket keys from the environment
tool: claude-code
repository: parcel-api
prompts: v3
at: 2026-10-26 08:47:21
version: 2.1.234
---
==> user
Move the last credentials out of deploy/staging.env into the environment. Scope: parcels/settings.py and nothing else in the package.

- Settings gets aws_access_key_id, aws_secret_access_key and github_token, all SecretStr, no default
- settings must not show any of them in its repr
- a missing one must fail at start with the variable's name in the message

For trying it out use my token {{secret:github-token}} (read only, expires tonight). Tests in tests/test_settings.py, run them and mypy please.
==> say
Done means: `Settings()` fails and names what is missing, its repr shows no value, and the three fields are `SecretStr`. I won't write the token anywhere; the tests get made-up values.
==> read parcels/settings.py
==> +run cat deploy/staging.env
DATABASE_URL=postgresql://parcels:{{secret:database-password}}@db.staging.parcels.internal:5432/parcels
AWS_ACCESS_KEY_ID={{secret:aws-key-id}}
AWS_SECRET_ACCESS_KEY={{secret:aws-secret}}
AWS_REGION=eu-central-1
LABEL_BUCKET=parcel-labels-staging
==> think
Real values are in that file. Do not repeat them. Write the tests first.
==> say
`deploy/staging.env` holds real values, so they should be changed once this is deployed. I'm not repeating them. Tests first.
==> write tests/test_settings.py
import pytest
from pydantic import ValidationError

from parcels.settings import Settings

NAMES = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN"]


@pytest.fixture
def environment(monkeypatch):
    for name in NAMES:
        monkeypatch.setenv(name, f"made-up-{name.lower()}")
    return monkeypatch


def test_values_come_from_the_environment(environment):
    assert Settings().github_token.get_secret_value() == "made-up-github_token"


def test_the_repr_shows_no_value(environment):
    assert "made-up" not in repr(Settings())


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_value_is_named(environment, name):
    environment.delenv(name)
    with pytest.raises(ValidationError, match=name.lower()):
        Settings()
==> tests pytest tests/test_settings.py -q
ok tests/test_settings.py 0
bad tests/test_settings.py::test_values_come_from_the_environment
>       assert Settings().github_token.get_secret_value() == "made-up-github_token"
E       AttributeError: 'Settings' object has no attribute 'github_token'
bad tests/test_settings.py::test_a_missing_value_is_named[AWS_ACCESS_KEY_ID]
>       with pytest.raises(ValidationError, match=name.lower()):
E       Failed: DID NOT RAISE <class 'pydantic_core._pydantic_core.ValidationError'>
==> edit parcels/settings.py
+from pydantic import SecretStr
 from pydantic_settings import BaseSettings
 
 
 class Settings(BaseSettings):
+    """What the service needs from its environment; start-up fails when a secret is missing."""
+
     database: str = "parcels.db"
     northpost_url: str = "https://api.northpost.example"
-    northpost_token: str = ""
+    northpost_token: SecretStr = SecretStr("")
     swiftline_url: str = "https://rest.swiftline.example/v2"
-    swiftline_token: str = ""
+    swiftline_token: SecretStr = SecretStr("")
     label_bucket: str = "parcel-labels"
+    aws_access_key_id: SecretStr
+    aws_secret_access_key: SecretStr
+    github_token: SecretStr
==> tests pytest -q
ok tests/test_api.py 1
ok tests/test_client.py 10
ok tests/test_settings.py 5
ok tests/test_tracking.py 4
==> run mypy parcels
Success: no issues found in 8 source files
==> say
- Three `SecretStr` fields without default, and the two carrier tokens likewise: parcels/settings.py.
- No value in the repr: `test_the_repr_shows_no_value`.
- A missing one is named: `test_a_missing_value_is_named`, for each of the three.

`pytest -q`: "20 passed"; mypy: "Success: no issues found in 8 source files". Please change the staging keys: they stand in the history of deploy/staging.env.
==> user
will rotate them today. thanks
==> say
You are welcome.
