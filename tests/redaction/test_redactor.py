"""What the redactor replaces, what it leaves, and what holds for every text."""

from __future__ import annotations

import base64
import json
import re
import stat
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from debrief.errors import ConfigurationError
from debrief.redaction.finder import RULES, SearchBudget, _spans, may_hold_secrets, prefilter
from debrief.redaction.redactor import WITHHELD_MARK, Redactor, key_of, load_key
from debrief.redaction.rules import FORMATS, Context, Format, Line, has_crc
from debrief.redaction.spans import Hit, Prefilter, SecretSpan, once
from debrief.settings import load_settings
from tests.redaction.harmless import near_misses
from tests.redaction.synthetic import (
    ALNUM,
    HEX,
    Maker,
    context_cases,
    coverage,
    escaped_cases,
    generic_cases,
    hard_cases,
    known_cases,
)

REDACTOR = Redactor(b"k" * 32)
_CAREFUL = (Context, Line)
PLACEHOLDER = re.compile(r"<secret:[a-z0-9-]+:[0-9a-f]{6}>")


def share_found(cases: object) -> float:
    found = total = 0
    for case in cases:  # type: ignore[attr-defined]
        spans = [(f.start, f.end) for f in REDACTOR.redact(case.text).findings]
        total += 1
        found += all(coverage(case.text, secret, spans) >= 0.97 for secret in case.secrets)
    return found / total


def test_known_formats_are_found_in_every_place() -> None:
    assert share_found(known_cases(101)) >= 0.99


def test_passwords_and_keys_are_found_by_what_stands_beside_them() -> None:
    assert share_found(generic_cases(102)) >= 0.97


def test_encoded_escaped_and_broken_secrets_are_found() -> None:
    assert share_found(hard_cases(103, each=1)) >= 0.85


def test_secrets_are_found_where_manuals_and_people_put_them() -> None:
    assert share_found(context_cases(105, each=1)) >= 0.95


@pytest.mark.parametrize("text", ["$ curl https://api.telegram.org/bot{}/getMe", "bot token {}"])
def test_a_token_is_found_behind_the_letters_that_its_vendor_writes_before_it(text: str) -> None:
    token = f"{Maker(108).of('123456789', 10)}:AA{Maker(109).of(ALNUM, 33)}"
    redacted = REDACTOR.redact(text.format(token)).text
    assert token not in redacted
    assert redacted.startswith(text[:4])


@pytest.mark.parametrize(
    "text",
    [
        "密码是 {}",
        "пароль: {}",
        'variable "db_password" {{\n  default = "{}"\n}}',
        "a\tsid\n密码：{}",
    ],
)
@pytest.mark.parametrize("is_ascii", [True, False])
def test_json_hides_no_secret_behind_its_escapes(text: str, is_ascii: bool) -> None:
    """Of other alphabets, of line breaks, tabs and quotation marks."""
    secret = Maker(110).password()
    document = json.dumps({"content": text.format(secret)}, ensure_ascii=is_ascii)
    assert secret not in REDACTOR.redact_json(document).text
    assert document in may_hold_secrets([document])


def test_every_rule_but_formats_finds_something_in_a_case() -> None:
    """One that finds nothing where manuals and people leave secrets can go."""
    rules = {
        number: rule for number, (rule, _, _) in enumerate(RULES) if isinstance(rule, _CAREFUL)
    }
    idle = set(rules)
    for case in (*context_cases(116), *generic_cases(116, each=1)):
        for hit in prefilter().hits(case.text):
            if hit.pattern in idle and [*_spans(case.text, [hit], SearchBudget(10**6), 0)]:
                idle.discard(hit.pattern)
    assert [RULES[number][1] for number in idle] == []


def test_every_secret_of_a_command_is_found() -> None:
    first, second = Maker(111).password(), Maker(112).token()
    for text in (
        f"fly secrets set RELAY_DSN={first} QUEUE_DSN={second} -a shop",
        f"qpdf --encrypt {first} {second} 256 -- a.pdf b.pdf",
        f"kubectl create secret generic a --from-literal=x={first} --from-literal='y={second}'",
    ):
        redacted = REDACTOR.redact(text).text
        assert first not in redacted
        assert second not in redacted


@pytest.mark.parametrize(
    "text",
    [
        'TOKEN: Final = "{}"',
        'API_TOKEN: typing.ClassVar[str] = "{}"',
        'const token: string | undefined = "{}";',
        'const SECRET: &\'static str = "{}";',
        'Jwts.builder().signWith(SignatureAlgorithm.HS256, "{}")',
        'x.signWith("{}")',
        'Cipher.init(key="{}")',
        """sops set secrets.yaml '["db"]["pw"]' '"{}"'""",
        "yes {} | passwd bob",
    ],
)
def test_types_and_calls_hide_no_literal(text: str) -> None:
    secret = Maker(118).token()
    assert secret not in REDACTOR.redact(text.format(secret)).text
    assert secret not in REDACTOR.redact_json(json.dumps({"content": text.format(secret)})).text


def test_names_in_a_query_are_read_one_by_one() -> None:
    """A name that begins within what looked like the value of the name before it."""
    for key in ("x", "abc", "abcdef", "a-longer-one"):
        token = Maker(113).of(ALNUM, 35)
        assert token not in REDACTOR.redact(f"GET /messages?key={key}&token={token}\n").text


def test_words_of_a_passphrase_are_found_in_quotation_marks_alone() -> None:
    said = 'the passphrase on that key is "{}"'
    assert "otter" not in REDACTOR.redact(said.format("purple otter lamp vivid")).text
    for harmless in ("empty", "not set", "<your passphrase here>"):
        assert harmless in REDACTOR.redact(said.format(harmless)).text


def test_base64_of_a_sentence_is_no_password_but_of_a_token_is_one() -> None:
    for said in ("base64 -d <<< {}", "echo {} | base64 -d"):
        harmless = said.format(base64.b64encode(b"The quick brown fox sleeps").decode())
        assert REDACTOR.redact(harmless).text == harmless
        token = base64.b64encode(Maker(114).github().encode()).decode()
        assert token not in REDACTOR.redact(said.format(token)).text


def test_a_json_file_of_thousands_of_settings_is_searched_setting_by_setting() -> None:
    make = Maker(115)
    values = [make.password() for _ in range(1_500)]
    rows = json.dumps([{"key": "db_password", "value": value, "note": "ä"} for value in values])
    redacted = REDACTOR.redact(rows)
    assert len(redacted.findings) == len(values)
    assert WITHHELD_MARK not in redacted.text


def test_tokens_with_nothing_between_them_are_found_in_one_pass() -> None:
    """Found one a pass, they would take too long, and most would stay."""
    make = Maker(117)
    tokens = [f"squ_{make.of(HEX, 40)}" for _ in range(1_000)]
    redacted = REDACTOR.redact("".join(tokens))
    assert [token for token in tokens if token in redacted.text] == []
    assert len(redacted.findings) == len(tokens)


def test_a_known_format_is_found_behind_in_and_before_every_escape() -> None:
    assert share_found(escaped_cases(106)) >= 0.995


def test_a_name_that_is_written_with_escapes_is_a_name() -> None:
    secret = Maker(107).password()
    for name in ("pass%77ord", "api\\u005fpassword", "&#112;assword", "pass\x1b[1mword"):
        assert secret not in REDACTOR.redact(f"{name}\\u003d\\u0022{secret}\\u0022,").text


def test_near_misses_stay() -> None:
    cases = list(near_misses(104))
    hits = [case.text for case in cases if REDACTOR.redact(case.text).findings]
    assert len(hits) <= len(cases) // 100


def test_a_placeholder_has_the_kind_and_six_digits_that_depend_on_the_key() -> None:
    token = Maker(1).github()
    here = REDACTOR.redact(f"use {token} now").text
    there = Redactor(b"x" * 32).redact(f"use {token} now").text
    assert re.fullmatch(r"use <secret:github-token:[0-9a-f]{6}> now", here)
    assert here != there


def test_one_secret_has_one_placeholder_in_every_spelling() -> None:
    token = Maker(2).github()
    escaped = token.replace("_", "\\u005f")
    texts = [f"a {token}", f'"k": "{token}"', f"x={token}&y", f'"log {escaped} end"']
    marks = {PLACEHOLDER.search(REDACTOR.redact(text).text).group() for text in texts}  # type: ignore[union-attr]
    assert len(marks) == 1


def test_a_text_without_secrets_is_returned_as_the_same_object() -> None:
    text = "def add(a, b):\n    return a + b\n" * 50
    assert REDACTOR.redact(text).text is text
    document = json.dumps({"file_path": "a.py", "content": text})
    assert REDACTOR.redact_json(document).text is document


def test_a_field_name_makes_a_bare_value_a_secret() -> None:
    value = Maker(3).password()
    assert REDACTOR.redact(value, "password").text != value
    assert REDACTOR.redact(value, "file_name").text == value


def test_overlapping_findings_are_replaced_as_one() -> None:
    make = Maker(4)
    token, rest = make.github(), "Aq9!zR7x"
    text = f"postgres://svc:{token}{rest}@db.invalid/x"
    redacted = REDACTOR.redact(text)
    assert token[-8:] not in redacted.text
    assert rest not in redacted.text
    assert len(redacted.findings) == 1


def test_findings_tell_where_the_secret_was_and_never_what_it_was() -> None:
    make = Maker(5)
    first, second = make.github(), make.password()
    text = f"ärger 🙂 {first}\npassword = '{second}'\n"
    findings = REDACTOR.redact(text).findings
    assert [text[f.start : f.end] for f in findings] == [first, second]
    assert first not in repr(findings)
    assert second not in repr(findings)


def test_a_doubtful_value_is_replaced_and_counted_as_unsure() -> None:
    redacted = REDACTOR.redact(f"feed_key = '{Maker(6).token()}!Q'")
    assert "<secret:" in redacted.text
    assert redacted.unsure == 1


def test_a_key_block_keeps_its_number_of_lines_and_a_diff_its_markers() -> None:
    block = Maker(7).pem()
    plain = REDACTOR.redact(f"$ cat key\n{block}\ndone").text
    assert plain.count("\n") == block.count("\n") + 2
    assert "KEY-----" not in plain
    diff = "--- a/k\n+++ b/k\n@@ -0,0 +1,9 @@\n" + "".join(f"+{row}\n" for row in block.split("\n"))
    marked = REDACTOR.redact(diff).text.split("\n")
    rows = [row for row in marked[3:] if row]
    assert all(row.startswith("+<secret:private-key:") for row in rows)
    assert [row[1:] for row in rows] == plain.split("\n")[1:-1]


def test_json_stays_json_and_keeps_what_is_no_secret() -> None:
    make = Maker(8)
    secret = make.password()
    value = {
        "a": [1, 2.5, None, True, 12345678901234567890123, 'ü\n\t"x"'],
        "env": {"DB_PASSWORD": secret},
        "list": ["run", "--password", secret],
        "nested": json.dumps({"password": secret}),
    }
    redacted = REDACTOR.redact_json(json.dumps(value))
    back = json.loads(redacted.text)
    assert back["a"] == value["a"]
    assert secret not in redacted.text
    assert json.loads(back["nested"])["password"].startswith("<secret:password:")
    assert redacted.text == json.dumps(back, ensure_ascii=False, separators=(",", ":"))


def test_a_checksum_proves_a_token_that_looks_like_a_sample() -> None:
    token = Maker(9).github()
    assert has_crc(token)
    assert not has_crc(token[:-1] + ("A" if token[-1] != "A" else "B"))


@pytest.mark.parametrize(
    "token",
    [
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "gho_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        "github_pat_11ABCDEFG0123456789abc_defghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVW",
        "npm_abcdefghijklmnopqrstuvwxyz0123456789",
        "glpat-abcdefghij1234567890",
        "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH",
        "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789",
    ],
)
def test_a_token_of_the_right_form_is_one_however_it_was_made_up(token: str) -> None:
    for text in (token, f"export TOKEN={token}\n", f'{{"note": "it is {token}."}}'):
        redacted = REDACTOR.redact(text).text
        assert token not in redacted
        assert PLACEHOLDER.search(redacted)


@pytest.mark.parametrize(
    "known",
    [known for known in FORMATS if known.check not in ("signed", "jwt", "pem", "sas")],
    ids=lambda known: known.kind,
)
@settings(max_examples=2, suppress_health_check=[HealthCheck.filter_too_much])
@given(st.data())
def test_whatever_has_a_known_form_and_is_no_sample_is_found(
    known: Format, data: st.DataObject
) -> None:
    def judged(text: str) -> tuple[int, int] | None:
        found = known.pattern.search(text)
        return known.judged(text, found) if found else None

    form = re.compile(known.lead + known.start + known.rest, re.ASCII)
    text = data.draw(st.from_regex(form, fullmatch=True).filter(judged))
    start, end = judged(text) or (0, 0)
    assert text[start:end] not in REDACTOR.redact(f"see {text} there").text


SEED = [
    "ocean",
    "violet",
    "tunnel",
    "garlic",
    "pepper",
    "marble",
    "candle",
    "winter",
    "forest",
    "silver",
    "rocket",
    "anchor",
]


@pytest.mark.parametrize(
    "before", ["mnemonic: ", "MNEMONIC='", "the seed phrase is ", "recovery_phrase="]
)
def test_the_words_that_open_a_wallet_are_found_and_other_words_stay(before: str) -> None:
    for count in (12, 15, 18, 24):
        words = " ".join((SEED * 2)[:count])
        assert REDACTOR.redact(f"{before}{words}\n").text.startswith(
            f"{before}<secret:seed-phrase:"
        )
    for count in (11, 13, 14, 26):
        words = f"{before}{' '.join((SEED * 3)[:count])}\n"
        assert REDACTOR.redact(words).text == words
    few = f"{before}{'the ocean and ' * 4}\n"
    assert REDACTOR.redact(few).text == few


@pytest.mark.parametrize(
    "sample",
    [
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "ghp_000000000000000000000000000000000000",
        "ghp_exampleexampleexampleexampleexample12",
        "ghp_yourtokenyourtokenyourtokenyourtoken",
        "sk-ant-api03-your-key-goes-here-0123456789abcdef",
    ],
)
def test_a_token_that_says_that_it_is_none_stays(sample: str) -> None:
    assert REDACTOR.redact(f"the token is like {sample} there").text.count(sample) == 1


def test_placeholders_are_left_alone() -> None:
    text = "password = <secret:password:3f9a1c>, token: <secret:token:00ffaa>"
    assert REDACTOR.redact(text).text is text


_PIECES = st.sampled_from(
    [
        *(case.text for case in known_cases(11, 1)),
        *(case.text for case in generic_cases(12, 1)),
        *(case.text for case in hard_cases(13, 1)),
        *(case.text for case in near_misses(14, 1)),
        "<secret:token:12ab34>",
        "password=",
        'token: "',
        "Bearer ",
        "\\u002d",
        "%2D",
        "' + '",
        "\x1b[0m",
    ]
)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.one_of(_PIECES, st.text(max_size=20)), max_size=6).map("".join))
def test_redacting_twice_changes_nothing_and_no_line_is_added_or_lost(text: str) -> None:
    once = REDACTOR.redact(text)
    assert REDACTOR.redact(once.text).text is once.text
    assert once.text.count("\n") == text.count("\n")
    assert all(0 <= f.start < f.end <= len(text) for f in once.findings)


@settings(max_examples=20, deadline=None)
@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=15), _PIECES),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(
                st.sampled_from(["password", "token", "name", "value", "x"]), inner, max_size=3
            ),
        ),
        max_leaves=8,
    )
)
def test_redacted_json_is_json_and_has_nothing_more_to_redact(value: object) -> None:
    once = REDACTOR.redact_json(json.dumps(value))
    json.loads(once.text)
    assert REDACTOR.redact_json(once.text).text is once.text


def test_json_nested_too_deep_is_taken_as_text() -> None:
    secret = Maker(15).github()
    text = "[" * 100_000 + f'"{secret}"' + "]" * 100_000
    assert secret not in REDACTOR.redact_json(text).text
    text = "[" * 700 + f'"{secret}"' + "]" * 700
    assert secret not in REDACTOR.redact_json(text).text


def test_half_a_surrogate_pair_does_not_disturb() -> None:
    secret = Maker(16).github()
    assert REDACTOR.redact(f"\ud83d {secret} \ude00").text.startswith("\ud83d <secret:")


def _key_of(home: str) -> bytes:
    return load_key(Path(home))


def test_two_processes_at_once_get_the_same_key(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4) as pool:
        keys = set(pool.map(_key_of, [str(tmp_path / "home")] * 16))
    assert len(keys) == 1
    path = tmp_path / "home" / "redaction.key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [p.name for p in path.parent.iterdir()] == ["redaction.key"]


def test_a_damaged_key_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "redaction.key").write_bytes(b"short")
    with pytest.raises(ConfigurationError, match="holds 5 bytes"):
        load_key(tmp_path)


def test_a_key_that_is_told_beats_the_files_and_makes_none(tmp_path: Path) -> None:
    told = "5a" * 32
    secret = Maker(18).github()
    text = f"token {secret}"
    here = load_settings({"DEBRIEF_HOME": str(tmp_path / "a"), "DEBRIEF_REDACTION_KEY": told})
    there = load_settings({"DEBRIEF_HOME": str(tmp_path / "b"), "DEBRIEF_REDACTION_KEY": told})
    alone = load_settings({"DEBRIEF_HOME": str(tmp_path / "b")})
    assert not (tmp_path / "a").exists()
    first, second, third = (Redactor(key_of(each)).redact(text) for each in (here, there, alone))
    assert first.text == second.text != third.text
    assert Redactor(key_of(here)).redact(text) == first


def test_a_key_that_is_none_is_refused(tmp_path: Path) -> None:
    for told in ("5a5a", "not hex at all", "5a" * 33):
        with pytest.raises(ConfigurationError, match="is not 64 hex digits") as refused:
            load_key(tmp_path, told)
        assert told not in str(refused.value)
    with pytest.raises(ConfigurationError):
        Redactor(b"abc")


def test_what_is_found_in_a_second_look_is_placed_in_the_first_text() -> None:
    make = Maker(17)
    first, second = make.github(), make.github()
    seen: list[str] = []

    def find_one(text: str, name: str, budget: SearchBudget) -> list[SecretSpan]:
        seen.append(text)
        at = max(text.find(first), text.find(second))
        return [SecretSpan(at, at + len(first), "github-token")] if at >= 0 else []

    text = f"é {first} and {second}."
    found = REDACTOR.replace(text, "", find_one, SearchBudget(len(text))).findings
    assert len(seen) == 3
    assert [text[f.start : f.end] for f in found] == [first, second]


NEEDLE = Prefilter(["needle[0-9]"])


@given(st.lists(st.text(max_size=8), min_size=1, max_size=5))
def test_hits_are_where_python_finds_them(parts: list[str]) -> None:
    text = "needle7".join(parts)
    hits = [(hit.start, hit.end) for hit in NEEDLE.hits(text)]
    assert [text[start:end] for start, end in hits] == ["needle7"] * (len(parts) - 1)


def test_threads_share_one_prefilter() -> None:
    text = "x" * 10_000 + "needle1" + "é" * 10_000 + "needle2"
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: [hit.start for hit in NEEDLE.hits(text)], range(200)))
    assert found == [[10_000, 20_007]] * 200


def test_what_eight_threads_ask_for_is_compiled_once() -> None:
    made: list[Prefilter] = []
    start = Barrier(8)

    @once
    def needle() -> Prefilter:
        made.append(Prefilter(["needle[0-9]"]))
        return made[-1]

    def search(_: int) -> list[Hit]:
        start.wait()
        return needle().hits("a needle7")

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(search, range(8))) == [[Hit(2, 9, 0)]] * 8
    assert len(made) == 1


@pytest.mark.parametrize("damage", [b"", b"junk", None])
def test_compiled_patterns_are_kept_and_made_anew_where_they_are_damaged(
    damage: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path))
    first = Prefilter(["needle[0-9]"], is_kept=True)
    (kept,) = (tmp_path / "patterns").iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(whole[:-9] if damage is None else damage)
    second = Prefilter(["needle[0-9]"], is_kept=True)
    assert second.hits("a needle7") == first.hits("a needle7") == [Hit(2, 9, 0)]
    assert kept.read_bytes() == whole
    assert Prefilter(["other"], is_kept=True).hits("another") == [Hit(2, 7, 0)]


@pytest.mark.parametrize("length", [255, 300, 1_500, 4_000])
@pytest.mark.parametrize(
    "text", ["API_TOKEN={}\n", "token: {}", 'x = {{"secret_key": "{}"}}', "a\nb token={}&c=d"]
)
def test_a_long_value_is_found_too(text: str, length: int) -> None:
    value = Maker(length).of(ALNUM, length)
    redacted = REDACTOR.redact(text.format(value)).text
    assert value[:20] not in redacted
    assert value[-20:] not in redacted


def test_columns_of_a_table_are_read_by_their_heads() -> None:
    first, second = (Maker(seed).password() for seed in (22, 23))
    for text in (
        f"| user | Password |\n|---|---|\n| bob | `{first}` |\n| ann | {second} |\n",
        f'id,user,password,mail\n1,bob,"{first}",b@x.invalid\n2,ann,{second},a@x.invalid\n',
        f"user\tdb_password\nbob\t{first}\nann\t{second}\n",
    ):
        redacted = REDACTOR.redact(text).text
        assert first not in redacted
        assert second not in redacted
        assert "bob" in redacted
        assert REDACTOR.redact_json(json.dumps({"content": text})).text.count("<secret:") == 2
    harmless = "| Token | Meaning |\n|---|---|\n| IDENT | a name |\n| NUMBER | digits |\n"
    assert REDACTOR.redact(harmless).text is harmless


def test_literals_are_not_taken_for_expressions() -> None:
    assert [hit.start for hit in Prefilter(["a.b*"], literal=True).hits("axb a.b* a.b")] == [4]


@pytest.mark.parametrize(
    "command",
    [
        "sshpass -p kX9#vLq2!mZr ssh a@b",
        "mysql --version \nmysql -uroot -pkX9#vLq2!mZr db",
        "curl -u bob:kX9#vLq2!mZr https://x.y",
    ],
)
def test_a_secret_after_a_line_break_is_found_in_json_too(command: str) -> None:
    redactor = Redactor(b"k" * 32)
    text = f"$ cd x\n{command}"
    in_json = redactor.redact_json(json.dumps({"content": text}))
    assert len(in_json.findings) == len(redactor.redact(text).findings) > 0
    assert "kX9#vLq2!mZr" not in in_json.text
    nested = redactor.redact_json(json.dumps({"arguments": json.dumps({"command": text})})).text
    assert "kX9#vLq2!mZr" not in nested


def test_json_that_a_replacement_breaks_is_withheld() -> None:
    def find_quotes(text: str, name: str, budget: SearchBudget) -> list[SecretSpan]:
        at = text.find('one",')
        return [SecretSpan(at, at + 4, "token")] if at >= 0 else []

    redacted = REDACTOR.replace_in_json('["one","two"]', find_quotes, SearchBudget(13))
    assert list(json.loads(redacted.text)) == ["withheld"]
    assert redacted.unsure == 1


def test_hex_digits_are_decoded_in_either_case() -> None:
    digits = Maker(21).github().encode().hex()
    for written in (digits, digits.upper()):
        assert written not in REDACTOR.redact(f"payload 0x{written} sent").text
