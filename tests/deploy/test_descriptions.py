"""Compose, Kubernetes and the image: they name what there is, hold no secret, and are pinned."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import typer
import yaml
from dagster._core.launcher import RunLauncher

import pipelines.command  # noqa: F401  registers its commands
from debrief.cli.app import app
from debrief.settings import load_settings
from debrief.state import state_url

TOP = Path(__file__).parents[2]
DEPLOY = TOP / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
VALUES = yaml.safe_load((DEPLOY / "kubernetes" / "values.yaml").read_text())
BESIDE = list(yaml.safe_load_all((DEPLOY / "kubernetes" / "debrief.yaml").read_text()))
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
TEXTS = [DEPLOY / "compose.yaml", *sorted((DEPLOY / "kubernetes").glob("*.yaml")), *UNITS]
SERVICES = sorted(COMPOSE["services"])
OF_OTHERS = {
    "DAGSTER_PG_PASSWORD",
    "DEBRIEF_DOMAIN",
    "POSTGRES_PASSWORD",
    "POSTGRES_USER",
    "POSTGRES_DB",
    "TRANSCRIPTS",
}
"""Of the image of Postgres, and of the compose file alone."""


def command_of(program: str) -> click.Command:
    """Return one of Dagster's own commands; they are slow to import."""
    if program == "dagster-daemon":
        from dagster._daemon.cli import cli

        return cli
    from dagster._cli import create_dagster_cli

    return create_dagster_cli()  # type: ignore[no-untyped-call, no-any-return]


def commands() -> Iterator[list[str]]:
    for service in COMPOSE["services"].values():
        if "debrief" in service.get("image", ""):
            yield service["command"]
    for document in BESIDE:
        for container in document["spec"].get("template", {}).get("spec", {}).get("containers", []):
            yield container["command"]
    for unit in UNITS:
        (command,) = re.findall(r"^ExecStart=/opt/debrief/.venv/bin/(.+)$", unit.read_text(), re.M)
        yield command.split()


def test_every_part_is_a_service() -> None:
    assert {"postgres", "code", "web", "daemon", "api", "metrics"} <= set(SERVICES)
    public = {n for n in SERVICES if COMPOSE["services"][n].get("profiles") == ["public"]}
    assert public == {"proxy", "login"}
    workers = {n for n in SERVICES if COMPOSE["services"][n].get("profiles") == ["workers"]}
    assert workers == {"redis", "worker"}


@pytest.mark.parametrize("command", list(commands()), ids=" ".join)
def test_every_command_is_one_that_there_is_with_these_options(command: list[str]) -> None:
    program, *words = command
    if program == "python":
        module = TOP / f"{words[1].replace('.', '/')}.py"
        assert module.is_file()
    elif program == "debrief":
        known = typer.main.get_command(app).commands[words[0]]  # type: ignore[attr-defined]
        options = {option for parameter in known.params for option in parameter.opts}
        assert {word for word in words[1:] if word.startswith("--")} <= options
    else:
        known = command_of(program)
        while isinstance(known, click.Group):
            known = known.commands[words.pop(0)]
        options = {option for parameter in known.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_every_variable_of_ours_is_a_setting_that_is_written_up(path: Path) -> None:
    named = set(re.findall(r"\b(?:DEBRIEF|DAGSTER|DATABASE|POSTGRES)_[A-Z_]+\b", path.read_text()))
    written_up = (TOP / "docs" / "settings.md").read_text()
    assert {name for name in named - OF_OTHERS if name not in written_up} == set()


@pytest.mark.parametrize("name", SERVICES)
def test_every_image_is_pinned_to_a_version(name: str) -> None:
    assert re.search(r":v?\d+\.\d+", COMPOSE["services"][name]["image"])


def test_the_images_of_the_build_are_pinned_and_packages_have_hashes() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    assert all(re.search(r":\d+\.\d+\.\d+", line) for line in re.findall(r"^FROM .*", text, re.M))
    assert text.count("--require-hashes") == text.count("-r deploy/locks/")
    for lock in re.findall(r"deploy/locks/\w+\.lock", text):
        assert (TOP / lock).is_file()


def test_what_the_image_needs_is_not_left_out_of_its_context() -> None:
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    kept = {line[1:] for line in ignored if line.startswith("!")}
    assert {"assets", "debrief", "judges", "pipelines", "prompts", "resources"} <= kept
    assert all((TOP / name).exists() for name in kept)
    assert not {".git", ".env", "tests"} & kept


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_no_secret_stands_in_a_file(path: Path) -> None:
    for line in path.read_text().splitlines():
        told = re.search(r"(?i)(password|secret|token|api_key)\w*: +(\S+)", line)
        value = told[2] if told and not line.lstrip().startswith("#") else ""
        assert not value or value.startswith(
            ("$", "dagster-postgresql-secret", "false", "{name:", "&secrets", "*secrets")
        )
        assert not re.search(r"://[^$/\s:]+:[^$/\s@]+@", line)


def test_nothing_but_the_proxy_is_published_beyond_this_machine() -> None:
    services = COMPOSE["services"].items()
    published = [port for n, s in services if n != "proxy" for port in s.get("ports", [])]
    assert len(published) == 3
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_kubernetes_gives_dagster_the_same_settings() -> None:
    ours = yaml.safe_load((DEPLOY / "dagster.yaml").read_text())
    theirs = VALUES["additionalInstanceConfig"]
    for block in ("run_retries", "run_queue", "nux"):
        assert theirs[block] == ours[block]
    assert theirs["concurrency"]["pools"] == ours["concurrency"]["pools"]
    assert VALUES["telemetry"] == ours["telemetry"]
    assert VALUES["retention"]["sensor"]["purgeAfterDays"].items() >= (
        ours["retention"]["sensor"]["purge_after_days"].items()
    )
    monitoring = theirs["run_monitoring"]
    assert monitoring["enabled"] is True
    assert set(monitoring) == set(ours["run_monitoring"])
    job = VALUES["runLauncher"]["config"]["k8sRunLauncher"]["runK8sConfig"]["jobSpecConfig"]
    longest = ours["run_monitoring"]["max_runtime_seconds"]
    assert job["activeDeadlineSeconds"] == monitoring["max_runtime_seconds"] == longest


def test_the_proxy_limits_sizes_and_slow_clients_in_front_of_the_api() -> None:
    caddyfile = (DEPLOY / "Caddyfile").read_text()
    for directive in ("read_header", "read_body", "max_size", "request_buffers"):
        assert re.search(rf"^\s+{directive} \d", caddyfile, re.M)
    port = COMPOSE["services"]["api"]["command"][-1]
    assert f":api:{port}}}" in caddyfile


def test_the_launcher_of_kubernetes_is_in_the_image_and_knows_its_settings() -> None:
    import dagster_k8s
    from kubernetes.client import V1JobSpec

    launcher = VALUES["runLauncher"]
    assert issubclass(getattr(dagster_k8s, launcher["type"]), RunLauncher)
    assert "\ndagster-k8s==" in (DEPLOY / "locks" / "team.lock").read_text()
    jobs = launcher["config"]["k8sRunLauncher"]["runK8sConfig"]["jobSpecConfig"]
    assert set(jobs) <= set(V1JobSpec.attribute_map.values())


def test_the_chart_writes_none_of_what_is_given_to_it_whole() -> None:
    daemon = VALUES["dagsterDaemon"]
    assert [daemon[name]["enabled"] for name in ("runCoordinator", "runMonitoring", "runRetries")] == [
        False, False, False,
    ]  # fmt: skip


def test_services_and_deployments_find_each_other() -> None:
    deployed = {d["metadata"]["name"]: d for d in BESIDE if d["kind"] == "Deployment"}
    for document in deployed.values():
        labels = document["spec"]["template"]["metadata"]["labels"]
        assert document["spec"]["selector"]["matchLabels"].items() <= labels.items()
    for service in (d for d in BESIDE if d["kind"] == "Service"):
        pod = deployed[service["metadata"]["name"]]["spec"]["template"]
        assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
        ports = {port["name"] for port in pod["spec"]["containers"][0]["ports"]}
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports


def test_dagsters_own_web_server_runs_nowhere() -> None:
    assert VALUES["dagsterWebserver"]["replicaCount"] == 0
    assert not [command for command in commands() if "webserver" in " ".join(command)]


def test_the_pages_believe_the_proxy_alone_and_hold_no_keys_of_models() -> None:
    services = COMPOSE["services"]
    trusted = services["web"]["environment"]["DEBRIEF_TRUSTED_PROXIES"]
    assert services["proxy"]["networks"]["front"] == {"ipv4_address": trusted}


@pytest.mark.parametrize(
    ("keys", "known_to"),
    [
        ("lake", {"code", "worker", "web", "metrics"}),
        ("models", {"code", "worker"}),
        ("recorder", {"api"}),
    ],
)
def test_each_service_gets_its_own_keys_and_no_other(keys: str, known_to: set[str]) -> None:
    services = COMPOSE["services"]
    files = {n: [file["path"] for file in services[n].get("env_file", ())] for n in SERVICES}
    assert {name for name, paths in files.items() if f"{keys}.env" in paths} == known_to
    assert not [name for name, paths in files.items() if ".env" in paths]


def test_on_kubernetes_the_recorder_has_no_key_of_models_or_of_the_lake() -> None:
    containers = {
        container["name"]: {each["secretRef"]["name"] for each in container.get("envFrom", ())}
        for document in BESIDE
        if document["kind"] == "Deployment"
        for container in document["spec"]["template"]["spec"]["containers"]
    }
    assert containers["api"] == {"debrief-recorder"}
    assert all("debrief-models" not in secrets for secrets in containers.values())
    runs = VALUES["dagster-user-deployments"]["deployments"][0]["envSecrets"]
    assert {each["name"] for each in runs} == {"debrief-lake", "debrief-models"}


def compose_client() -> list[str]:
    """Docker's own compose, as a plugin of the client or as a program beside this Python."""
    beside = Path(sys.executable).with_name("docker-compose")
    for words in (["docker", "compose"], ["docker-compose"], [str(beside)]):
        if shutil.which(words[0]) is None:
            continue
        if subprocess.run([*words, "version"], capture_output=True).returncode == 0:
            return words
    pytest.skip("there is no docker compose")


def test_docker_compose_reads_the_file() -> None:
    words = ["--file", str(DEPLOY / "compose.yaml"), "--profile", "workers", "config"]
    said = subprocess.run(
        [*compose_client(), *words, "--format", "json"],
        env={"POSTGRES_PASSWORD": "for-this-test", "PATH": os.environ["PATH"], "HOME": "/"},
        capture_output=True,
        text=True,
    )
    assert said.returncode == 0, said.stderr
    services = json.loads(said.stdout)["services"]
    assert sorted(services) == SERVICES
    told = services["worker"]["environment"]
    assert state_url(load_settings({"DEBRIEF_HOME": "/nowhere", **told})).endswith("dagster")
    assert "volumes" not in services["worker"]


def test_kubernetes_knows_every_field_of_what_stands_beside_the_chart() -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    for document in BESIDE:
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
