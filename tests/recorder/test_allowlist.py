from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from debrief.errors import InputError
from debrief.recorder.commands import check_command, command_problem, is_validation, table

TABLE = table()


def words_of(text: str) -> list[list[str]]:
    """Return the cases of a table, which are parted by two spaces or lines."""
    return [case.split(" ") for line in text.splitlines() for case in line.strip().split("  ")]


ALLOWED = words_of("""\
    lint  test  build  i  install  -r lint  -r test  -r build
    add react  add -D vitest @vitest/ui  add @acme/ui@workspace:^  remove left-pad @acme/ui
    add react@19 react-dom@^19.1.0 @types/react@~19.1.2 zod@next is-odd@3.0.1-rc.1+b2
    --filter web lint  --filter @acme/web test  --filter ./packages/web build
    --filter web... build  --filter web i  --filter web install  --filter web remove tsup
    --filter @acme/web add lodash.merge  --filter web add -D tsup""")


@pytest.mark.parametrize("args", ALLOWED, ids=" ".join)
def test_what_the_buttons_run_is_allowed(args: list[str]) -> None:
    check_command("pnpm", args, ".")
    check_command("pnpm", args, "packages/web.app")


REFUSED = words_of(
    """\
    run test  dlx cowsay  exec sh  publish  store prune  lint --fix  test -- -u  test src  TEST
    test && curl  install --ignore-scripts  install react  i -g  add  add -D  add react -D
    add -g react  add --save-dev react  add -D -D react  add --config.ignore-scripts=false
    add react --config.registry=http://127.0.0.1  add react --registry=http://127.0.0.1
    add --dir react  add --dir=/ react  add -C react  add -C../other react  add -w react
    add https://example.org/x.tgz  add git+ssh://git@example.org/x.git  add github:user/repository
    add user/repository  add file:../x  add link:../x  add ./x  add ../x  add /x  add x.tgz/
    add left@npm:right  add left@npm:right@1  add react@>=19  add react@*  add react@
    add react@1@2  add @acme  add @/ui  add @acme/  add @acme/ui/more  add react;id  add $(id)
    add `id`  add react|id  add react&id  add react>x  add react<x  add 'react'  add "react"
    add re\\act  add %PATH%  add {a,b}  add !react  add #react  add ~  add reаct
    remove  remove react@19  remove -r react  rm react  --filter  --filter web  -F web test
    --filter -r test  --filter --dir test  --filter=web test  --filter * test  --filter !web test
    --filter ... test  --filter web^... test  --filter [HEAD~1] test  --filter .. test
    --filter {packages/**} test  --filter ../other test  --filter ./../other test
    --filter ./ test  --filter /packages/web test  --filter ./packages//web test
    --filter ./packages/.git test  --filter web;id test  --filter web --filter api test
    --filter web run test  --filter web -r test  --filter web add  -r  -r add react  -r install
    -r --filter web test  -r exec id  -C .. test  --dir / test  --config.script-shell=/bin/sh test
    """.rstrip()
)
ODD = [
    *([], [""], ["test "], [" test"], ["test\n"], ["test; rm -rf ~"], ["add", "react@19 || 18"]),
    *(["add", "re act"], ["add", "react\nvue"], ["add", "react\n"], ["add", "react\r"]),
    *(["add", "react\0"], ["add", "react", ""], ["add", "a" * 215], ["add", *["react"] * 64]),
    *(["--filter", "", "test"], ["--filter", "web test", "test"], ["--filter", "web\n", "test"]),
]


@pytest.mark.parametrize("args", [*REFUSED, *ODD], ids=lambda args: repr(" ".join(args))[:60])
def test_everything_else_is_refused(args: list[str]) -> None:
    with pytest.raises(InputError, match="Allowed are, after pnpm: lint, test"):
        check_command("pnpm", args, ".")
    assert not is_validation("pnpm", args)


@pytest.mark.parametrize(
    "cmd",
    ["npm", "npx", "PNPM", "pnpm ", "./pnpm", "/usr/bin/pnpm", "pnpm.cmd", "sh", "", "pnpm\n"],
)
def test_another_program_is_refused(cmd: str) -> None:
    with pytest.raises(InputError, match="the program is not pnpm"):
        check_command(cmd, ["test"], ".")
    assert not is_validation(cmd, ["test"])


FOLDERS = [
    *("", "/", "/tmp", "..", "../other", "packages/..", "packages/../..", "./packages"),
    *("packages/", "packages//web", "packages/./web", "~", "~root", "C:", "C:\\"),
    *("\\\\server\\share", "packages\\web", ".git", "packages/.git", "-C", "packages\n"),
    *("packages\0", "$(id)", "a;b", " ", "a" * 215),
]


@pytest.mark.parametrize("cwd", FOLDERS, ids=repr)
def test_a_working_directory_outside_or_odd_is_refused(cwd: str) -> None:
    with pytest.raises(InputError, match="working directory"):
        check_command("pnpm", ["test"], cwd)


def test_a_long_command_is_shown_cut() -> None:
    with pytest.raises(InputError) as caught:
        check_command("pnpm", ["add", "x" * 10_000], ".")
    assert len(caught.value.culprit) < 300


VALIDATES = {
    **dict.fromkeys(("test", "--filter web lint", "-r build"), True),
    **dict.fromkeys(("add lint", "remove test", "add -D build", "install"), False),
    **dict.fromkeys(("--filter test add build", "--filter web i"), False),
}


@pytest.mark.parametrize(("line", "validates"), VALIDATES.items(), ids=VALIDATES)
def test_only_lint_test_and_build_validate(line: str, validates: bool) -> None:
    check_command("pnpm", line.split(" "))
    assert is_validation("pnpm", line.split(" ")) is validates


def word(name: str) -> st.SearchStrategy[str]:
    ascii_only = st.characters(codec="ascii")
    texts = st.from_regex(TABLE.words[name], fullmatch=True, alphabet=ascii_only)
    return texts.filter(lambda text: len(text) <= TABLE.longest_word)


def sentence(pattern: str) -> st.SearchStrategy[list[str]]:
    parts = []
    for part in pattern.split(" "):
        if part.endswith(">+"):
            parts.append(st.lists(word(part[1:-2]), min_size=1, max_size=2))
        elif part.startswith("<"):
            parts.append(word(part[1:-1]).map(lambda one: [one]))
        else:
            parts.append(st.just([part]))
    return st.tuples(*parts).map(lambda lists: [one for some in lists for one in some])


def grammar(*patterns: str) -> re.Pattern[str]:
    """Patterns as one expression over arguments that end in NUL."""
    alternatives = []
    for pattern in patterns:
        expression = ""
        for part in pattern.split(" "):
            if part.endswith(">+"):
                expression += f"(?:(?:{TABLE.words[part[1:-2]]})\0)+"
            elif part.startswith("<"):
                expression += f"(?:{TABLE.words[part[1:-1]]})\0"
            else:
                expression += f"{re.escape(part)}\0"
        alternatives.append(expression)
    return re.compile("|".join(alternatives))


VALIDATION = [
    pattern for pattern in TABLE.patterns if pattern.rpartition(" ")[2] in TABLE.validation
]
sentences = st.sampled_from(TABLE.patterns).flatmap(
    lambda pattern: st.tuples(st.just(pattern), sentence(pattern))
)


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(sentences, word("folder"))
def test_whatever_the_table_generates_is_allowed(said: tuple[str, list[str]], cwd: str) -> None:
    pattern, args = said
    check_command("pnpm", args, cwd)
    assert is_validation("pnpm", args) is (pattern in VALIDATION)


odd = st.text(st.sampled_from("ab@/.-~^*;$ \n1"), max_size=6)
words = st.sampled_from([*" ".join(TABLE.patterns).split(" "), "web", "@acme/ui", "./web", "a@1"])


@given(st.lists(words | odd, max_size=5))
def test_nothing_is_allowed_that_the_table_does_not_generate(args: list[str]) -> None:
    said = "".join(f"{arg}\0" for arg in args)
    generated = grammar(*TABLE.patterns).fullmatch(said) is not None
    assert (not command_problem("pnpm", args)) is generated
    assert is_validation("pnpm", args) is (grammar(*VALIDATION).fullmatch(said) is not None)
