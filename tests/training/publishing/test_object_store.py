"""Publishing to a real S3 endpoint, that of moto's server on the loopback."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from debrief.cli.app import app
from debrief.lake import Lake
from tests.training.lakes import TASK, lake_of, stored
from tests.training.publishing.test_publish import COUNT, team
from tests.training.scenario import FINGERPRINT

s3fs = pytest.importorskip("s3fs")
BUCKET = "published"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    with pytest.MonkeyPatch.context() as environment:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            environment.delenv(name)
        server = ThreadedMotoServer("127.0.0.1", port=0)
        server.start()
        host, port = server.get_host_and_port()
        environment.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        environment.setenv("AWS_ACCESS_KEY_ID", "testing")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        environment.setenv("AWS_DEFAULT_REGION", "us-east-1")
        yield f"http://{host}:{port}"
        server.stop()


def test_sets_are_published_to_an_object_store_with_splits_and_parquet(
    endpoint: str, tmp_path: Path
) -> None:
    import pyarrow.parquet as pq

    made = lake_of(tmp_path / "lake", team())
    row = stored(made, eval_share=0.5).row
    store = s3fs.S3FileSystem()
    store.mkdir(BUCKET)
    target = f"s3://{BUCKET}/sets"
    arguments = ["export", "--to", target, "--lake", made.url, "--format", "trl", "--parquet"]
    ran = CliRunner().invoke(app, arguments)
    assert ran.exit_code == 0, ran.output
    place = Lake(target)
    folder = f"{TASK}/{FINGERPRINT}"
    assert set(place.names(folder)) == {
        f"{folder}/{name}"
        for name in ("train.jsonl", "eval.jsonl", "train.parquet", "eval.parquet", "card.md")
    }
    counts = {
        side: len((place.read_bytes(f"{folder}/{side}.jsonl") or b"").splitlines())
        for side in ("train", "eval")
    }
    assert counts == {"train": row.train, "eval": row.eval}
    assert sum(counts.values()) == COUNT
    with store.open(f"{BUCKET}/sets/{folder}/eval.parquet") as file:
        assert pq.ParquetFile(file).metadata.num_rows == row.eval
    local = tmp_path / "local"
    local_run = CliRunner().invoke(app, [*arguments[:2], str(local), *arguments[3:]])
    assert local_run.exit_code == 0
    for name in ("train.jsonl", "eval.parquet", "card.md"):
        assert place.read_bytes(f"{folder}/{name}") == (local / folder / name).read_bytes()
    again = CliRunner().invoke(app, arguments)
    assert "nothing had changed" in again.output
    without = CliRunner().invoke(app, arguments[:-1])
    assert without.exit_code == 0
    assert not [name for name in place.names(folder) if name.endswith(".parquet")]
