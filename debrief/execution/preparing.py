"""Install what a repository's checks need before they run, because they run without network.

Installing a package may run its code, so it is installed in the sandbox: with the network, the
repository's files and one folder that is kept, and without the home folder or a key. What was made
is kept under the digest of the lock files and of the programs that made it.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import orjson
from msgspec import Struct

from debrief.errors import ConfigurationError, flat
from debrief.execution.sandbox import TREE, Mount, Sandbox, SandboxLimits
from debrief.execution.toolchains import Toolchain, registries, toolchain
from debrief.files import make_folder

LIMITS = SandboxLimits(seconds=1800.0, processes=2048, disk_mb=8192)
"""What making ready may use."""
_KEPT = "/deps"
_SCM = {
    "SETUPTOOLS_SCM_PRETEND_VERSION": "0.0.0",
    "PDM_BUILD_SCM_VERSION": "0.0.0",
    "UV_DYNAMIC_VERSIONING_BYPASS": "0.0.0",
    "POETRY_DYNAMIC_VERSIONING_BYPASS": "0.0.0",
}
"""A version for packages that take theirs from git, which is not there."""
_TEST_EXTRAS = ("test", "tests", "testing", "dev", "develop", "development")
_REQUIREMENTS = (
    "requirements.txt",
    *(f"{name}-requirements.txt" for name in ("dev", "test")),
    *(f"requirements-{name}.txt" for name in ("dev", "test")),
    *(f"requirements/{name}.txt" for name in ("base", "dev", "test", "tests")),
)
_NODE_SCRATCH = (".vite", ".vite-temp", ".vitest", ".cache")
"""Folders in ``node_modules`` that test programs write to."""
_NO_PROJECT = (OSError, ValueError, TypeError, AttributeError, RecursionError)
"""What reading a ``pyproject.toml`` raises whose values are no such as it has."""
_FORM = "1"
"""Changed when the same lock file is made ready in another way."""


class Prepared(Struct, frozen=True, kw_only=True):
    """What the runs of a tree's checks see beside the tree."""

    key: str
    """Digest of what decides it: lock files and versions of the programs."""
    mounts: tuple[Mount, ...] = ()
    environment: dict[str, str] = {}
    path: tuple[str, ...] = ()
    """Folders in the sandbox, before the system's in ``PATH``."""


class NotPrepared(Struct, frozen=True, kw_only=True):
    """What is missing of what a tree's checks need."""

    missing: str
    """For a person: a program, or the packages of a file."""


class _Step(Struct, frozen=True, kw_only=True):
    """How the packages of one language are made ready in one folder."""

    name: str
    """Of its folder in the sandbox; of its own for each place, since paths are written into it."""
    folder: str
    """Below the tree's top."""
    files: tuple[str, ...]
    """Below the tree's top: what decides the packages."""
    toolchain: Toolchain | None
    needs: str
    """The toolchain, for a person."""
    command: str
    """Fills the folder ``$DEPS``."""
    environment: dict[str, str] = {}
    """Of making it and of the runs."""
    path: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Its folder in the sandbox."""
        return f"{_KEPT}/{self.name}"


def prepare(
    tree: Path,
    cache: Path,
    sandbox: Sandbox,
    *,
    network: bool,
    folders: Sequence[str] = ("",),
    limits: SandboxLimits | None = None,
) -> Prepared | NotPrepared:
    """Return what the checks of a tree need, from the cache or made now.

    Args:
        tree: a repository's files, without ``.git``.
        cache: the folder that keeps what was prepared.
        sandbox: where packages are installed: doing so runs their code.
        network: whether it may be made now, over the network; else only what the cache has.
        folders: whose packages are needed, below the tree's top: those of the checks.
        limits: of making it.

    Raises:
        ConfigurationError: the sandbox does not work, the cache cannot be written, or a
            registry's address holds a password.
    """
    keys, parts = [], []
    steps = {step.name: step for folder in ("", *folders) for step in _steps(tree, folder)}
    for step in steps.values():
        if step.toolchain is None:
            return NotPrepared(missing=f"{step.needs}, for {step.files[0]}")
        key = _key(step, tree)
        kept = cache / key
        if not kept.is_dir():
            if not network:
                return NotPrepared(missing=f"packages of {step.files[0]}")
            if failure := _make(step, tree, kept, sandbox, limits or LIMITS):
                return NotPrepared(missing=f"packages of {step.files[0]}: {failure}")
        keys.append(key)
        parts.append(_part(step, kept))
    return Prepared(
        key=hashlib.sha256(" ".join(keys).encode()).hexdigest() if keys else "",
        mounts=tuple(mount for part in parts for mount in part.mounts),
        environment={name: value for part in parts for name, value in part.environment.items()},
        path=tuple(folder for part in parts for folder in part.path),
    )


def packages_of(clone: Path, cache: Path) -> Path:
    """Return where the packages of a clone are kept: what another repository's installation put
    into its own is never seen."""
    return cache / hashlib.sha256(str(clone.resolve()).encode()).hexdigest()[:12]


def _key(step: _Step, tree: Path) -> str:
    digest = hashlib.sha256()
    assert step.toolchain is not None
    for text in (_FORM, step.name, step.command, step.toolchain.version):
        digest.update(f"{text}\0".encode())
    for name in step.files:
        with suppress(OSError):
            digest.update(f"{name}\0".encode() + (tree / name).read_bytes() + b"\0")
    return digest.hexdigest()


def _make(step: _Step, tree: Path, kept: Path, sandbox: Sandbox, limits: SandboxLimits) -> str:
    """Install the packages of a step into the cache; return why that failed."""
    assert step.toolchain is not None
    variables, files = registries()
    make_folder(kept.parent)
    with tempfile.TemporaryDirectory(prefix="making-", dir=kept.parent) as folder:
        making = Path(folder) / "deps"
        making.mkdir()
        making.chmod(0o755)
        ran = sandbox.run(
            f"set -e\nDEPS={step.place}\n{step.command}",
            copies={TREE: tree},
            folder=f"{TREE}/{step.folder}".rstrip("/"),
            mounts=[
                *step.toolchain.mounts,
                *files,
                Mount(source=making, target=step.place, access="write"),
            ],
            environment={**_SCM, **variables, **step.environment},
            path=[*step.path, *step.toolchain.path],
            network=True,
            limits=limits,
        )
        if ran.exit_code != 0:
            said = [line for line in ran.output.splitlines() if line.strip()][-3:]
            return flat(f"{ran.limit or ran.exit_code}: {' '.join(said)}")[:500]
        try:
            making.rename(kept)
        except OSError as error:
            if not kept.is_dir():  # another process was first
                raise ConfigurationError(str(kept), f"cannot be kept: {error.strerror}") from error
    return ""


def _part(step: _Step, kept: Path) -> Prepared:
    """Return what runs see of a step's packages."""
    assert step.toolchain is not None
    mounts = [*step.toolchain.mounts, Mount(source=kept, target=step.place)]
    if _is_own_folder(build := kept / "build", kept):
        mounts.append(Mount(source=build, target=f"{step.place}-build", access="copy"))
    for modules in sorted((kept / "tree").glob("**/node_modules")) if step.name[:2] == "js" else ():
        below = modules.relative_to(kept / "tree")
        if "node_modules" not in below.parts[:-1] and _is_own_folder(modules, kept):
            target = "/".join(part for part in (TREE, step.folder, str(below)) if part)
            scratch = [each for each in _NODE_SCRATCH if _is_own_folder(modules / each, kept)]
            mounts.append(Mount(source=modules, target=target, scratch=tuple(scratch)))
    return Prepared(
        key="",
        mounts=tuple(mounts),
        environment=step.environment,
        path=(*step.path, *step.toolchain.path),
    )


def _is_own_folder(folder: Path, kept: Path) -> bool:
    """Return whether a folder is one of those that were kept: what was installed may have left a
    link in its place, which leads to a folder of this machine."""
    own = kept.resolve() / folder.relative_to(kept)
    return folder.is_dir() and folder.resolve() == own


def _steps(tree: Path, folder: str) -> Iterator[_Step]:
    """Yield what the packages of a folder take, or of the nearest one above that has some."""
    for names, step in (
        (("pyproject.toml", "setup.py", "setup.cfg", *_REQUIREMENTS), _python),
        (("package.json",), _javascript),
        (("go.mod",), _go),
        (("Cargo.toml",), _rust),
    ):
        home = folder
        while not any((tree / home / name).is_file() for name in names) and home:
            home = os.path.dirname(home)  # noqa: PTH120
        if any((tree / home / name).is_file() for name in names):
            yield step(tree, home)
        elif step is _python and _has_python_tests(tree):
            yield step(tree, "")


def _has_python_tests(tree: Path) -> bool:
    places = (tree, tree / "tests", tree / "test")
    return any(True for place in places for _ in place.glob("test_*.py"))


def _named(language: str, folder: str) -> str:
    return f"{language}-{hashlib.sha256(folder.encode()).hexdigest()[:8]}" if folder else language


def _there(tree: Path, folder: str, names: Sequence[str]) -> tuple[str, ...]:
    paths = (os.path.join(folder, name) for name in names)  # noqa: PTH118
    return tuple(path for path in paths if (tree / path).is_file())


def _python(tree: Path, folder: str) -> _Step:
    """A virtual environment, with the project itself from the tree, and pytest."""
    name = _named("python", folder)
    place = f"{_KEPT}/{name}"
    names = ("uv.lock", "poetry.lock", "pyproject.toml", "setup.py", "setup.cfg", *_REQUIREMENTS)
    files = _there(tree, folder, names)
    here = tree / folder
    pip = f"uv pip install --python {place}/bin/python"
    if (here / "uv.lock").is_file():
        command = (
            "uv sync --frozen --all-groups --all-extras || uv sync --frozen --all-groups "
            "|| uv sync --frozen"
        )
    else:
        lines = ["uv venv --allow-existing $DEPS"]
        listed = " ".join(f"-r {each}" for each in _REQUIREMENTS if (here / each).is_file())
        if listed:
            lines.append(f"{pip} {listed}")
        if (here / "setup.py").is_file() or _is_project(here):
            extras, groups = _test_extras(here)
            program = f"-e '.[{','.join(extras)}]'" if extras else "-e ."
            program += "".join(f" --group {group}" for group in groups)
            lines.append(f"{pip} {program}" + (f" || {pip} -e ." if extras or groups else ""))
        command = "\n".join(lines)
    command += f"\n[ -e {place}/bin/pytest ] || {pip} pytest"
    return _Step(
        name=name,
        folder=folder,
        files=files or ("its Python tests",),
        toolchain=toolchain("uv"),
        needs="uv, which installs Python packages (pip install uv)",
        command=command,
        environment={
            "VIRTUAL_ENV": place,
            "UV_PROJECT_ENVIRONMENT": place,
            "UV_PYTHON_INSTALL_DIR": f"{place}/pythons",
            "UV_CACHE_DIR": "/tmp/uv",
            "UV_LINK_MODE": "copy",
            "UV_NO_PROGRESS": "1",
            "PYTHONPATH": ":".join(f"{TREE}/{folder}/{each}".rstrip("/") for each in ("", "src")),
        },
        path=(f"{place}/bin",),
    )


def _is_project(folder: Path) -> bool:
    with suppress(*_NO_PROJECT):
        content = tomllib.loads((folder / "pyproject.toml").read_text())
        return bool({"project", "build-system"} & set(content))
    return False


def _test_extras(folder: Path) -> tuple[list[str], list[str]]:
    """Return the extras and the dependency groups that tests take, by their usual names."""
    with suppress(*_NO_PROJECT):
        content = tomllib.loads((folder / "pyproject.toml").read_text())
        extras = content.get("project", {}).get("optional-dependencies", {})
        groups = content.get("dependency-groups", {})
        return (
            [name for name in _TEST_EXTRAS if name in extras],
            [name for name in _TEST_EXTRAS if name in groups],
        )
    return [], []


def _javascript(tree: Path, folder: str) -> _Step:
    """All folders ``node_modules``, by the package manager whose lock file is there; any but npm is
    itself a package."""
    name = _named("js", folder)
    place = f"{_KEPT}/{name}"
    locks = {
        "pnpm-lock.yaml": ("pnpm", "install --frozen-lockfile"),
        "yarn.lock": ("yarn", "install --frozen-lockfile"),
        "bun.lock": ("bun", "install --frozen-lockfile"),
        "bun.lockb": ("bun", "install --frozen-lockfile"),
        "package-lock.json": ("npm", "ci"),
        "npm-shrinkwrap.json": ("npm", "ci"),
    }
    files = _there(tree, folder, (*locks, "package.json", "pnpm-workspace.yaml", ".npmrc"))
    lock = next((lock for lock in locks if (tree / folder / lock).is_file()), "")
    manager, arguments = locks.get(lock, ("npm", "install"))
    lines = []
    if manager != "npm":
        program = _manager_of(tree / folder, manager)
        lines.append(f"npm install --no-audit --no-fund --prefix $DEPS/programs '{program}'")
    lines += [
        f"{manager} {arguments}",
        "mkdir -p $DEPS/tree",
        "find . -name node_modules -prune -print > /tmp/found",
        "tar -c -f - -T /tmp/found | tar -x -f - -C $DEPS/tree",
        "cd $DEPS/tree",
        "find . -name node_modules -prune -print | while read -r each; do",
        f'  (cd "$each" && mkdir -p {" ".join(_NODE_SCRATCH)})',
        "done",
    ]
    return _Step(
        name=name,
        folder=folder,
        files=files,
        toolchain=toolchain("npm"),
        needs="Node.js with npm",
        command="\n".join(lines),
        environment={"npm_config_update_notifier": "false", "npm_config_cache": "/tmp/npm"},
        path=(f"{place}/programs/node_modules/.bin",),
    )


def _manager_of(folder: Path, manager: str) -> str:
    """Return the package of a package manager, in the version that ``package.json`` asks for."""
    with suppress(OSError, ValueError, AttributeError):
        said = str(orjson.loads((folder / "package.json").read_bytes()).get("packageManager", ""))
        name, _, version = said.partition("@")
        version = version.partition("+")[0]
        if name == manager and version.replace(".", "").isalnum():
            old_yarn = manager != "yarn" or version.startswith("1.")
            return f"{manager}@{version}" if old_yarn else f"@yarnpkg/cli-dist@{version}"
    return {"pnpm": "pnpm@10", "yarn": "yarn@1"}.get(manager, manager)


def _go(tree: Path, folder: str) -> _Step:
    """The modules, and a build cache with all that the tests are built of.

    Where not all modules are to be had, those that this system's tests take will do.
    """
    name = _named("go", folder)
    place = f"{_KEPT}/{name}"
    return _Step(
        name=name,
        folder=folder,
        files=_there(tree, folder, ("go.sum", "go.mod", "go.work")),
        toolchain=toolchain("go", "version"),
        needs="Go",
        command=(
            "mkdir -p $DEPS/mod $DEPS/build\nexport GOCACHE=$DEPS/build GOFLAGS=-modcacherw\n"
            "go mod download || go list -test -deps ./... >/dev/null\n"
            "go test -run '^$' ./... >/dev/null || true\n"
        ),
        environment={
            "GOMODCACHE": f"{place}/mod",
            "GOCACHE": f"{place}-build",
            "GOTOOLCHAIN": "local",
        },
    )


def _rust(tree: Path, folder: str) -> _Step:
    """The crates."""
    name = _named("rust", folder)
    place = f"{_KEPT}/{name}"
    locked = " --locked" if (tree / folder / "Cargo.lock").is_file() else ""
    return _Step(
        name=name,
        folder=folder,
        files=_there(tree, folder, ("Cargo.lock", "Cargo.toml")),
        toolchain=toolchain("cargo"),
        needs="Rust with cargo",
        command=f"cargo fetch{locked}",
        environment={"CARGO_HOME": place},
    )
