"""What became of the work, in real repositories and beside real transcripts."""

from __future__ import annotations

import json
import subprocess
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from debrief.lake import Lake
from debrief.outcomes.gathering import outcomes_beside, outcomes_of
from debrief.outcomes.store import all_labels, put_labels, success_labels
from debrief.sessions.model import Session, ToolCall, TranscriptRef
from tests.training.scenario import call, says, session, turn
from tests.trap import Trap

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
LATER = START + timedelta(days=90)
CODE = "def retry(times):\n    for attempt in range(times):\n        yield attempt\n"
PULL = "https://github.com/shop/shop/pull/12"


class Repo:
    """A repository whose commits have times."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit(-24, "Begin", {"README": "The shop\n"})

    def git(self, *arguments: str, hours: float = 0.0) -> str:
        at = f"{int((START + timedelta(hours=hours)).timestamp())} +0000"
        names = ("AUTHOR", "COMMITTER")
        person = {
            f"GIT_{n}_{k}": v for n in names for k, v in (("NAME", "Ada"), ("EMAIL", "a@b.c"))
        }
        times = {f"GIT_{name}_DATE": at for name in names}
        done = subprocess.run(
            ["git", *arguments], cwd=self.folder, env={"PATH": "/usr/bin:/bin", **person, **times},
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        return done.stdout.strip()

    def commit(self, hours: float, subject: str, files: dict[str, str | None]) -> str:
        for name, text in files.items():
            path = self.folder / name
            path.unlink() if text is None else path.write_text(text)
        self.git("add", "-A")
        self.git("commit", "--quiet", "-m", subject, hours=hours)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "shop")


def edit(repo: Repo, text: str = CODE, name: str = "retry.py") -> ToolCall:
    lines = [f"+{line}" for line in text.removesuffix("\n").split("\n")]
    patch = f"@@ -0,0 +1,{len(lines)} @@\n" + "\n".join(lines) + "\n"
    path = str(repo.folder / name)
    return call("Write", {"file_path": path}, path=path, added=len(lines), patch=patch)


def shell(command: str, result: str) -> ToolCall:
    return call(arguments={"command": command}, result=result)


def worked(repo: Repo | None, *calls: ToolCall, **fields: Any) -> Session:
    given = {"cwd": str(repo.folder) if repo else "/gone", "started": START, **fields}
    return session("s1", turn("Retry uploads", says("Done.", *calls)), **given)


def became(
    tmp_path: Path, one: Session, now: datetime = LATER, named: tuple[Path, ...] = ()
) -> dict[str, tuple[str, str]]:
    """The outcomes of one session in a lake: value and detail by source."""
    lake = Lake(str(tmp_path / "lake"))
    lake.write("raw_sessions", "2026-01-05", [one], Session)
    found = outcomes_of(lake, named, now)
    assert len({label.source for label in found.labels}) == len(found.labels)
    put_labels(lake, found)
    return {label.source: (label.value, label.detail) for label in found.labels}


def test_lines_that_stay_are_a_weak_success_and_only_when_their_time_is_up(
    tmp_path: Path, repo: Repo
) -> None:
    mine = repo.commit(1, "Retry", {"retry.py": CODE})
    one = worked(repo, edit(repo))
    known = {"kept": ("yes", f"3 of 3 own lines were kept in {mine[:8]}")}
    assert became(tmp_path, one, START + timedelta(days=6)) == known
    repo.commit(24 * 2, "Move", {"retry.py": None, "again.py": f"# moved\n{CODE}"})
    assert became(tmp_path, one, START + timedelta(days=8)) == {
        **known, "survival": ("yes", "3 of 3 own lines are still there after 7 days"),
    }  # fmt: skip
    repo.commit(24 * 20, "Rewrite", {"again.py": "from shop import retry\n"})
    there = became(tmp_path, one)["survival"]
    assert there == ("no", "0 of 3 own lines are still there after 30 days")
    assert success_labels(Lake(str(tmp_path / "lake")))["s1"][:2] == (False, "survival")


def test_work_that_nobody_committed_is_no_failure_however_far_the_repository_has_gone(
    tmp_path: Path, repo: Repo
) -> None:
    one = worked(repo, edit(repo))
    repo.commit(1, "Something else", {"retry.py": "print('by somebody else entirely')\n"})
    repo.commit(24 * 9, "Go on", {"README": "The shop, again\n"})
    assert became(tmp_path, one) == {"kept": ("open", "0 of 3 own lines were kept")}
    assert success_labels(Lake(str(tmp_path / "lake"))) == {}
    assert became(tmp_path, worked(repo, shell("ls", "README"))) == {}


LINES = [f"total += prices[{number}]" for number in range(10)]


def test_few_of_its_own_lines_or_few_of_them_kept_say_nothing(tmp_path: Path, repo: Repo) -> None:
    repo.commit(1, "Sum", {"sum.py": "\n".join(LINES[:8])})
    for count, expected in ((10, "yes"), (2, "open")):
        one = worked(repo, edit(repo, "\n".join(LINES[:count]), "sum.py"))
        assert became(tmp_path, one)["kept"][0] == expected
    repo.commit(2, "Undo one", {"sum.py": "\n".join(LINES[:7])})
    more = worked(repo, edit(repo, "\n".join([*LINES, "print(total)"]), "sum.py"))
    assert became(tmp_path, more)["kept"][0] == "open"


def test_lines_that_were_there_before_are_not_a_sessions_own(tmp_path: Path, repo: Repo) -> None:
    repo.commit(-2, "Sum", {"sum.py": "\n".join(LINES)})
    again = edit(repo, "\n".join([*LINES, "print(total)"]), "sum.py")
    assert became(tmp_path, worked(repo, again))["kept"] == ("open", "0 of 1 own lines were kept")
    new = edit(repo, "\n".join([*LINES, *CODE.splitlines()]), "sum.py")
    assert became(tmp_path, worked(repo, new))["kept"] == ("open", "0 of 3 own lines were kept")
    repo.commit(24 * 20, "Much later", {"sum.py": "\n".join([*CODE.splitlines(), *LINES])})
    assert became(tmp_path, worked(repo, new))["kept"] == ("yes", "3 of 3 own lines were kept")


def test_lines_that_it_took_away_again_are_not_its_own(tmp_path: Path, repo: Repo) -> None:
    wrong = edit(repo, "\n".join(LINES), "retry.py")
    patch = "".join(f"-{line}\n" for line in LINES)
    undone = replace(wrong, patch=f"@@ -1,10 +0,0 @@\n{patch}", added=0, removed=10)
    mine = repo.commit(1, "Retry", {"retry.py": CODE})
    kept = became(tmp_path, worked(repo, wrong, undone, edit(repo)))["kept"]
    assert kept == ("yes", f"3 of 3 own lines were kept in {mine[:8]}")


@pytest.mark.parametrize("place", ["refs/stash", "refs/heads/entire/1a2b3c4"])
def test_a_stash_or_a_checkpoint_of_a_tool_keeps_nothing(
    tmp_path: Path, repo: Repo, place: str
) -> None:
    repo.commit(1, "WIP", {"retry.py": CODE})
    repo.git("update-ref", place, "HEAD")
    repo.git("reset", "--quiet", "--hard", "HEAD~1")
    assert became(tmp_path, worked(repo, edit(repo)))["kept"][0] == "open"


FILES = st.dictionaries(
    st.sampled_from(["README", "total.py", "shop.html", "notes.md"]),
    st.lists(st.text("abc =()+1", min_size=1, max_size=30), max_size=40).map("\n".join),
    min_size=1,
)


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(others=FILES, named=st.booleans(), ends=st.sampled_from(["stays", "rewritten", "reverted"]))
def test_other_peoples_files_in_the_same_commit_change_no_outcome(
    tmp_path: Path, others: dict[str, str | None], named: bool, ends: str
) -> None:
    found = []
    for files in ({}, others):
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        repo = Repo(folder / "shop")
        mine = repo.commit(1, "Retry", {"retry.py": CODE, **files})
        if ends == "rewritten":
            repo.commit(24 * 20, "Rewrite", {"retry.py": "from shop import retry\n"})
        elif ends == "reverted":
            repo.git("revert", "--no-edit", "HEAD", hours=30)
        committed = shell("git commit -qm Retry", f"[main {mine[:7]}] Retry\n 1 file changed")
        became(folder, worked(repo, edit(repo), *[committed] * named))
        known = success_labels(Lake(str(folder / "lake")))
        found.append({id_: success[:3] for id_, success in known.items()})
    assert found[0] == found[1]
    assert found[0]["s1"][0] is (ends == "stays")


def test_a_reverted_commit_is_a_failure_until_the_revert_is_reverted(
    tmp_path: Path, repo: Repo
) -> None:
    mine = repo.commit(1, "Retry", {"retry.py": CODE})
    one = worked(repo, shell("git commit -qm Retry", f"[main {mine[:7]}] Retry\n 1 file changed"))
    repo.git("revert", "--no-edit", "HEAD", hours=30)
    undo = repo.git("rev-parse", "HEAD")
    assert became(tmp_path, one)["revert"] == ("no", f"{undo[:8]} reverts {mine[:8]}")
    assert success_labels(Lake(str(tmp_path / "lake")))["s1"][:3] == (False, "revert", "checkout")
    repo.git("revert", "--no-edit", "HEAD", hours=40)
    assert "revert" not in became(tmp_path, one)
    repo.git("revert", "--no-edit", mine, hours=50)
    again = repo.git("rev-parse", "HEAD")
    assert became(tmp_path, one)["revert"] == ("no", f"{again[:8]} reverts {mine[:8]}")


def test_commits_and_settings_made_to_mislead_change_nothing_and_run_nothing(
    tmp_path: Path, repo: Repo
) -> None:
    text = f"{CODE}++ b/other.py\n@@ -0,0 +1 @@ here\ndiff --git a/x b/x\n\x01one\rline\n"
    one = worked(repo, edit(repo, text), edit(repo, "only = 'never committed'\n", "other.py"))
    marks = f"\x01{'0' * 40} 1\n\ndiff --git x x\n+++ other.py\n@@ -0,0 +1 @@\n+only"
    claim = f"{marks} = 'never committed'\n\x01{'0' * 40}\nThis reverts commit {'0' * 40}."
    repo.commit(1, claim, {"retry.py": text, ".gitattributes": "*.py diff=trap\n"})
    mine = signed(repo)
    repo.commit(2, "Unrelated\n\nci: failure\nMerge pull request #12", {"README": "On\n"})
    trap = Trap(tmp_path / "trap")
    for name in ("diff.trap.textconv", "diff.trap.command", "diff.external", "gpg.program"):
        repo.git("config", name, str(trap.program))
    repo.git("config", "log.showSignature", "true")
    assert became(tmp_path, one) == {
        "kept": ("yes", f"7 of 8 own lines were kept in {mine[:8]}"),
        "survival": ("yes", "7 of 7 own lines are still there after 30 days"),
    }
    assert not trap.sprung


def signed(repo: Repo) -> str:
    """Give the last commit a signature, and return its new id."""
    head, _, message = repo.git("cat-file", "commit", "HEAD").partition("\n\n")
    lines = ("gpgsig -----BEGIN PGP SIGNATURE-----", " ", " x", " -----END PGP SIGNATURE-----")
    file = repo.folder / ".git/signed"
    file.write_text("\n".join([head, *lines, "", f"{message}\n"]))
    repo.git("reset", "--hard", repo.git("hash-object", "-tcommit", "-w", str(file)))
    return repo.git("rev-parse", "HEAD")


def test_a_partial_clone_is_read_as_far_as_it_goes_and_fetches_nothing(
    tmp_path: Path, repo: Repo
) -> None:
    repo.commit(1, "Retry", {"retry.py": CODE})
    one, trap = worked(repo, edit(repo)), Trap(tmp_path / "trap")
    blob = repo.git("rev-parse", "HEAD:retry.py")
    (repo.folder / ".git/objects" / blob[:2] / blob[2:]).unlink()
    for name, value in (
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", f"ext::{trap.program} %S"),
        ("protocol.ext.allow", "always"),
    ):
        repo.git("config", name, value)
    assert "survival" not in became(tmp_path, one)
    assert not trap.sprung


@pytest.mark.parametrize("gone", ["/x" * 3_000, "/srv/\0shop", "C:\\shop", "/" + "y" * 300])
def test_a_path_that_this_machine_cannot_have_is_a_place_that_is_not_there(
    tmp_path: Path, gone: str
) -> None:
    ref = TranscriptRef(path=f"{gone}/s1.jsonl", digest="d", size=2, records=1)
    one = worked(None, transcripts=(ref,), cwd=gone)
    assert became(tmp_path, one) == {}
    plan = replace(one, cwd=f"{gone}/.debrief/worktrees/p")
    assert became(tmp_path, plan) == {}


def test_a_squashed_branch_is_found_by_its_lines_and_a_merged_pull_request_by_its_number(
    tmp_path: Path, repo: Repo
) -> None:
    asked = shell("gh pr create --fill", f"{PULL}\n")
    one = worked(repo, edit(repo), asked)
    assert became(tmp_path, one)["pull-request"] == ("open", PULL)
    squashed = repo.commit(50, "Retry uploads (#12)", {"retry.py": CODE, "up.py": "import retry\n"})
    elsewhere = replace(one, cwd="/home/ada/shop", repository="acme/shop")
    lake_of = tmp_path / "other"
    found = became(lake_of, elsewhere, named=(repo.folder,))
    assert found["kept"] == ("yes", f"3 of 3 own lines were kept in {squashed[:8]}")
    assert found["survival"][0] == "yes"
    assert success_labels(Lake(str(lake_of / "lake")))["s1"][:2] == (True, "pull-request")


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([("git push", ""), ("gh pr checks", "test\tpass\t1m\t\nlint\tfail\t2s\t")], {"ci": "no"}),
        ([("gh run view 7", "X main CI"), ("git push", "")], {}),
        ([("gh pr checks", "test\tpending\t0\t\nlint\tpass\t2s\t")], {}),
        ([("gh run watch", "✓ main CI · 7")], {"ci": "yes"}),
        ([("gh pr merge 12 --squash", "✓ Squashed and merged")], {"pull-request": "yes"}),
        ([("gh pr merge 99", "✓ Merged")], {}),
        ([("gh pr view --json state", '{"state":"CLOSED"}')], {"pull-request": "no"}),
        ([("echo gh pr close", "gh pr close")], {}),
        ([("git commit -m x", "[main 1a2b3c4] x")], {"commit": "made"}),
    ],
)
def test_what_a_session_saw_last_of_ci_and_its_pull_request(
    tmp_path: Path, calls: list[tuple[str, str]], expected: dict[str, str]
) -> None:
    made = [("gh pr create --fill", PULL), *calls]
    found = became(tmp_path, worked(None, *(shell(*each) for each in made)))
    said = {source: value for source, (value, _) in found.items()}
    assert said == {"pull-request": "open", **expected}


def test_a_note_of_ci_on_the_last_commit_counts(tmp_path: Path, repo: Repo) -> None:
    repo.commit(1, "Retry", {"retry.py": CODE})
    repo.git("notes", "--ref=ci", "add", "-m", "ci: failure (build 7)", "HEAD")
    assert became(tmp_path, worked(repo, edit(repo)))["ci"][0] == "no"


def transcript(path: Path, **fields: Any) -> Session:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")
    ref = TranscriptRef(path=str(path), digest="d", size=2, records=1)
    return worked(None, transcripts=(ref,), **fields)


def test_an_agents_share_of_a_commit_is_no_outcome(tmp_path: Path) -> None:
    one = transcript(tmp_path / "claude/s1.jsonl")
    entry = {"agent_lines": 182, "total_committed": 744, "agent_percentage": 24.4}
    sidecar = tmp_path / "claude/s1.entire-metadata.json"
    sidecar.write_text(json.dumps({"initial_attribution": entry}))
    lake = Lake(str(tmp_path / "lake"))
    assert became(tmp_path, one) == {}
    assert list(all_labels(lake)) == []


def test_a_benchmarks_reward_is_read_from_the_trial_a_transcript_lies_in(tmp_path: Path) -> None:
    trial = tmp_path / "jobs/2026/fix-git__Xy1"
    one = transcript(trial / "agent/sessions/projects/-app/s1.jsonl")
    (trial / "verifier").mkdir()
    (trial / "verifier/reward.txt").write_text("1\n")
    lake = Lake(str(tmp_path / "lake"))
    assert became(tmp_path, one)["benchmark"] == ("yes", "reward 1")
    assert success_labels(lake)["s1"][:3] == (True, "benchmark", "fix-git")
    result = {"task_name": "fix-git", "verifier_result": {"rewards": {"reward": 0.5}}}
    (trial / "result.json").write_text(json.dumps(result))
    put_labels(lake, outcomes_beside(lake))
    assert success_labels(lake)["s1"][:3] == (False, "benchmark", "fix-git")
    (trial / "result.json").unlink()
    (trial / "verifier/reward.txt").write_text("not a number")
    put_labels(lake, outcomes_beside(lake))
    assert success_labels(lake) == {}


def test_an_outcome_outlives_the_repository_that_told_it(tmp_path: Path, repo: Repo) -> None:
    repo.commit(1, "Retry", {"retry.py": CODE})
    one = worked(repo, edit(repo))
    became(tmp_path, one)
    repo.folder.rename(tmp_path / "moved")
    assert became(tmp_path, one) == {}
    assert success_labels(Lake(str(tmp_path / "lake")))["s1"][:2] == (True, "survival")
