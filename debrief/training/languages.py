"""Programming languages by the files that a session edited."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from debrief.sessions.model import Session, ToolCall
from debrief.sessions.readers.patches import edits_of_call

_SUFFIXES = """
    C: c h; C#: cs; C++: cc cpp cxx hpp hh; CSS: css scss sass less; Clojure: clj cljs;
    Dart: dart; Elixir: ex exs; Erlang: erl; Go: go; HTML: html htm; Haskell: hs; JSON: json
    jsonl; Java: java; JavaScript: js jsx mjs cjs; Julia: jl; Kotlin: kt kts; Lua: lua;
    Markdown: md mdx; Notebook: ipynb; PHP: php; Perl: pl pm; Python: py pyi; R: r; Ruby:
    rb; Rust: rs; SQL: sql; Scala: scala; Shell: sh bash zsh fish; Svelte: svelte; Swift:
    swift; TOML: toml; Terraform: tf; TypeScript: ts tsx mts cts; Vue: vue; YAML: yml yaml;
    Zig: zig
"""
_BY_SUFFIX = {
    suffix: language.strip()
    for language, _, suffixes in (entry.partition(":") for entry in _SUFFIXES.split(";"))
    for suffix in suffixes.split()
}


def languages_of(session: Session) -> Counter[str]:
    """Return the lines added and removed by language; ``other`` for what is not in the table."""
    lines: Counter[str] = Counter()
    for call in _calls(session):
        for edit in edits_of_call(call):
            if not edit.added + edit.removed:
                continue
            name = edit.path.replace("\\", "/").rsplit("/", 1)[-1]
            suffix = name.rpartition(".")[2].lower() if "." in name else ""
            lines[_BY_SUFFIX.get(suffix, "other")] += edit.added + edit.removed
    return lines


def _calls(session: Session) -> Iterator[ToolCall]:
    for turn in session.turns:
        for message in turn.messages:
            yield from message.calls
    for subagent in session.subagents:
        for message in subagent.messages:
            yield from message.calls
