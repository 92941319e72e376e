"""What a session shows while it goes on is what its record would say, and costs no record."""

from __future__ import annotations

from pathlib import Path

from debrief.recorder.checks import ReadyRule
from debrief.recorder.messages import changes_of
from debrief.recorder.session import session_of
from debrief.recorder.status import SessionStatus, status_of
from tests.machine import files_below
from tests.recorder.session_scenario import Shop
from tests.snapshots.scenario import commit, git, write

FINAL = ReadyRule(passed=True, on_final_tree=True)
LINES = "".join(f"line {number}\n" for number in range(40))


def status(shop: Shop, rule: ReadyRule = FINAL) -> SessionStatus:
    before = files_below(shop.folder)
    told = status_of(session_of(shop.home, shop.folder), rule)
    assert files_below(shop.folder) == before
    return told


def test_a_status_tells_of_every_kind_of_change_what_the_record_does(
    shop: Shop, file: Path
) -> None:
    commit(
        shop.folder,
        {
            ".gitattributes": "*.hidden -diff\n*.crlf text\n",
            **dict.fromkeys(["long", "mode", "link", "a.hidden", "a.crlf", ":(glob)*"], LINES),
            "old.bin": b"1\0",
        },
    )
    shop.start(ignore=("*.log",))
    write(
        shop.folder,
        {
            "long": LINES.replace("line 3\n", "").replace("line 30\n", "-- 30\n++ 30\n+"),
            "a.hidden": LINES + "more",
            "a.crlf": LINES.replace("\n", "\r\n") + "more\r\n",
            ":(glob)*": "less\n",
            "new/\nname": "x\ny",
            "old.bin": b"2\0",
            "a.log": "",
            "node_modules/x/y.js": "",
        },
    )
    (shop.folder / "mode").chmod(0o755)
    (shop.folder / "link").unlink()
    (shop.folder / "link").symlink_to("long")
    (shop.folder / "src/old.ts").unlink()
    told = status(shop)
    made = shop.stop(file, rule=FINAL)
    meta = made.record.meta
    assert list(told.changes) == changes_of(made.record)
    assert list(told.skipped) == meta.skipped
    assert list(told.warnings) == meta.warnings
    assert told.not_ready == made.not_ready
    assert len(told.changes) == 8


def test_a_check_counts_until_a_file_is_changed_after_it(shop: Shop, file: Path) -> None:
    shop.start()
    lacking = ["it changes no file", "no validation command (lint, test or build) was run"]
    assert list(status(shop).not_ready) == lacking
    shop.change()
    shop.run("pnpm", "test")
    assert status(shop).not_ready == ()
    write(shop.folder, {"src/discount.ts": "export const discount = 6;\n"})
    late = ("no validation command ran on the final tree",)
    assert status(shop).not_ready == late
    shop.run("pnpm", "lint")
    assert status(shop).not_ready == ("no validation command passed",)
    write(shop.folder, {"src/discount.ts": "export const discount = 5;\n"})
    assert status(shop).not_ready == shop.stop(file, rule=FINAL).not_ready == late


def test_commits_of_others_are_no_part_of_a_status(shop: Shop) -> None:
    shop.start()
    git(shop.folder, "checkout", "-q", "-b", "theirs")
    commit(shop.folder, {"theirs.ts": "1\n"})
    git(shop.folder, "checkout", "-q", "main")
    git(shop.folder, "reflog", "expire", "--expire=all", "--all")
    write(shop.folder, {"mine.ts": "1\n"})
    git(shop.folder, "merge", "-q", "--ff-only", "theirs")
    told = status(shop)
    assert "may hold those of others" in told.warnings[0]
    assert "may hold those of others" in told.not_ready[0]
