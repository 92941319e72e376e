"""Packages made ready in the sandbox, from a folder of wheels in place of a registry."""

from __future__ import annotations

import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from debrief.errors import ConfigurationError
from debrief.execution.checks import checks_of
from debrief.execution.model import Check
from debrief.execution.preparing import NotPrepared, Prepared, prepare
from debrief.execution.running import run_check
from debrief.execution.sandbox import Sandbox, SandboxLimits
from debrief.sessions.model import Session
from tests.execution.rows import NOW
from tests.execution.sandboxes import sandbox_or_skip

KEY = "planted-key-77aa"
UV = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
SUMS = "def add(a, b):\n    return a + b\n"
# What a stranger's package may do while it is installed, besides what it is for.
_BACKEND = """
import os, pathlib, zipfile
def build_editable(folder, config_settings=None, metadata_directory=None):
    places = [pathlib.Path(os.path.expanduser("~")), pathlib.Path("/root"), pathlib.Path("HOME")]
    seen = [str(dict(os.environ))]
    for place in places:
        try: seen += [path.read_text() for path in place.glob("*") if path.is_file()]
        except OSError: pass
    name = "shop-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.writestr("shop_seen.py", "SEEN = " + repr("".join(seen)))
        wheel.writestr("shop-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: shop\\nVersion: 1.0\\n")
        wheel.writestr("shop-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("shop-1.0.dist-info/RECORD", "")
    return name
"""


@pytest.fixture
def sandbox() -> Sandbox:
    return sandbox_or_skip()


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that takes one package, which a folder has as a wheel; keys beside it."""
    home = tmp_path / "home"
    home.mkdir()
    (home / ".netrc").write_text(KEY)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("SERVICE_KEY", KEY)
    wheels = tmp_path / "wheels"
    wheels.mkdir(mode=0o755)
    program = "[console_scripts]\npytest = sums:main\n"
    info = "Metadata-Version: 2.1\nName: sums\nVersion: 1.0\n"
    tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(wheels / "sums-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("sums.py", SUMS + "def main():\n    pass\n")
        wheel.writestr("sums-1.0.dist-info/METADATA", info)
        wheel.writestr("sums-1.0.dist-info/WHEEL", tags)
        wheel.writestr("sums-1.0.dist-info/entry_points.txt", program)
        wheel.writestr("sums-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("UV_FIND_LINKS", str(wheels))
    monkeypatch.setenv("UV_NO_INDEX", "1")
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "requirements.txt").write_text("sums==1.0\n")
    (folder / "backend.py").write_text(_BACKEND.replace("HOME", str(home)))
    (folder / "pyproject.toml").write_text(
        "[project]\nname = 'shop'\nversion = '1.0'\n[build-system]\nrequires = []\n"
        "build-backend = 'backend'\nbackend-path = ['.']\n"
    )
    return folder


@pytest.mark.skipif(UV is None, reason="uv is not installed")
def test_packages_are_installed_once_and_see_no_key(
    sandbox: Sandbox, tree: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    missing = prepare(tree, cache, sandbox, network=False)
    assert missing == NotPrepared(missing="packages of pyproject.toml")
    assert not cache.exists()

    prepared = prepare(tree, cache, sandbox, network=True, limits=SandboxLimits(seconds=120))
    assert isinstance(prepared, Prepared), prepared
    command = "python3 -c 'import sums, shop_seen; print(sums.add(1, 2), shop_seen.SEEN)'"
    check = Check(command=command, origin="session")
    ran = run_check(tree, check, prepared, sandbox, str, SandboxLimits(seconds=30))
    assert ran.exit_code == 0, ran.output
    assert ran.output.startswith("3 {")
    assert "SERVICE_KEY" not in ran.output
    assert KEY not in ran.output

    # Made once: for the same lock it is there without the network, for another one it is not.
    assert prepare(tree, cache, sandbox, network=False) == prepared
    (tree / "requirements.txt").write_text("sums==2.0\n")
    assert isinstance(prepare(tree, cache, sandbox, network=False), NotPrepared)
    failed = prepare(tree, cache, sandbox, network=True, limits=SandboxLimits(seconds=120))
    assert isinstance(failed, NotPrepared)
    assert "sums==2.0" in failed.missing
    assert len(list(cache.iterdir())) == 1


# Run by npm while it installs: the programs that come after it are the package's own.
_LINKS_OUT = """#!/bin/sh
programs=/deps/js/programs/node_modules/.bin
mkdir -p $programs HOST
printf '#!/bin/sh\\nrmdir /deps/js/tree; ln -s HOST /deps/js/tree' > $programs/tar
chmod +x $programs/tar
"""


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_what_was_installed_shows_a_run_no_folder_of_the_machine(
    sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    host = tmp_path_factory.mktemp("home")
    host.chmod(0o755)
    (host / "node_modules").mkdir()
    (host / "node_modules" / "key").write_text(KEY)
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "package.json").write_text('{"scripts": {"postinstall": "sh links.sh"}}')
    (tree / "links.sh").write_text(_LINKS_OUT.replace("HOST", str(host)))
    prepared = prepare(tree, tmp_path / "cache", sandbox, network=True)
    assert isinstance(prepared, Prepared), prepared
    [kept] = (tmp_path / "cache").iterdir()
    assert (kept / "tree").readlink() == host
    check = Check(command="cat node_modules/key", origin="session")
    assert KEY not in run_check(tree, check, prepared, sandbox, str).output


def test_a_registry_with_a_password_is_refused(
    sandbox: Sandbox, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if UV is None:
        pytest.skip("uv is not installed")
    for name, address in (
        ("UV_DEFAULT_INDEX", f"https://ada:{KEY}@registry.example/simple"),
        ("https_proxy", f"ada:{KEY}@proxy.example:3128"),
    ):
        monkeypatch.setenv(name, address)
        with pytest.raises(ConfigurationError, match=rf"{name}.*password") as error:
            prepare(tree, tmp_path / "cache", sandbox, network=True)
        assert KEY not in str(error.value)
        monkeypatch.delenv(name)


def test_a_tree_that_takes_nothing_is_ready(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    assert prepare(tmp_path / "tree", tmp_path / "cache", sandbox, network=False) == Prepared(
        key=""
    )
    assert [path.name for path in tmp_path.iterdir()] == ["tree"]


@pytest.mark.parametrize(
    "project", ["project = 'x'", "[project]\noptional-dependencies = 3", "a = " + "[" * 9_999]
)
def test_a_project_file_of_another_shape_stops_nothing(
    sandbox: Sandbox, tmp_path: Path, project: str
) -> None:
    (tmp_path / "pyproject.toml").write_text(project)
    found = prepare(tmp_path, tmp_path / "cache", sandbox, network=False)
    assert isinstance(found, NotPrepared)
    session = Session(id="s", source="", tool="t", task="", started=NOW, ended=NOW)
    assert not checks_of(session, tmp_path, ["till.py"])


@pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")
def test_a_go_module_that_only_another_system_takes_may_be_missing(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOPROXY", "off")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "go.mod").write_text("module shop\n\ngo 1.17\n\nrequire registry.example/keys v1.0.0\n")
    (tree / "keys_windows.go").write_text('package shop\n\nimport _ "registry.example/keys"\n')
    (tree / "sums.go").write_text("package shop\n\nfunc Add(a, b int) int { return a + b }\n")
    (tree / "sums_test.go").write_text(
        'package shop\n\nimport "testing"\n\n'
        'func TestAdd(t *testing.T) {\n\tif Add(1, 2) != 3 {\n\t\tt.Fatal("no")\n\t}\n}\n'
    )
    prepared = prepare(tree, tmp_path / "cache", sandbox, network=True)
    assert isinstance(prepared, Prepared), prepared
    check = Check(command="go test ./...", origin="repository")
    ran = run_check(tree, check, prepared, sandbox, str, SandboxLimits(seconds=120))
    assert ran.tests == {"shop::TestAdd": "passed"}, ran.output

    # What this system's tests take has to be there.
    (tree / "keys_windows.go").rename(tree / "keys.go")
    (tree / "go.sum").write_text("")
    missing = prepare(tree, tmp_path / "cache", sandbox, network=True)
    assert isinstance(missing, NotPrepared)
    assert "registry.example/keys" in missing.missing
