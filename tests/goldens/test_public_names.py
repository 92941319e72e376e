"""Names that others rely on stay."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest

from tests.goldens.public_names import COMMITTED, public_names

now_public = functools.cache(public_names)


@pytest.mark.parametrize(("kind", "names"), json.loads(COMMITTED.read_text()).items())
def test_a_public_name_stays(kind: str, names: Any) -> None:
    now = now_public()[kind]
    if isinstance(names, list):
        assert set(names) <= set(now)
        return
    assert names.keys() <= now.keys()
    for name, parts in names.items():
        if kind == "schemas":
            assert now[name] == parts, name
        else:
            assert set(parts) <= set(now[name]), name
