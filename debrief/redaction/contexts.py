"""The table of contexts: secrets without a format, given away by what stands beside them.

Each row is where to look (for the prefilter) and a careful function that reads the place. The
functions look at a bounded stretch around the place, so a hit costs the same in a text of any
length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from debrief.redaction import assignments, commands, headers
from debrief.redaction.names import KEYWORDS
from debrief.redaction.spans import Span

_KEYWORD = f"(?:{KEYWORDS})"


class Context(Struct, frozen=True):
    """A rule that finds a secret by what stands beside it."""

    anchor: str
    """Where to look: an expression for the multi-pattern engine."""
    find: Callable[[str, int, int], Iterator[Span]]
    """Reads the text at the place where the anchor starts; where it is not tracked, the places
    from a second one to the one where the anchor ends."""
    tracked: bool = True
    """The engine reports where the anchor starts; for a large expression only where it ends."""
    reach: int = 0
    """A line is not read again within so many characters."""


_TAIL = r"[\w.\-]{0,32}"
CONTEXTS: tuple[Context, ...] = (
    Context(
        rf"(?i){_KEYWORD}{_TAIL}[\"'`\\\])]{{0,6}}[ \t]{{0,4}}"
        r"(?::[ \t]?(?:&?str|string|bytes|Optional\[str\]|str . None)[ \t]{0,2})?"
        r"(?::=|=>|->|={1,3}|[:,>(]|\?\?|\|\||\xef\xbc\x9a)[ \t]{0,4}[fbru@$]{0,2}[\"'`\\]{0,6}"
        r"[^\s\"'`\\<>(){}$][^\s]{5}",
        assignments.assignments,
        tracked=False,
    ),
    Context(
        rf"(?i){_KEYWORD}{_TAIL}[\"'`\\*_]{{0,4}}[ \t]{{1,4}}"
        r"(?:(?:is|was|to|of|as|with|ist|es|est|=|:)[ \t]{1,4})?[\"'`\\]{0,4}"
        r"[^\s\"'`\\<>(){}][^\s]{7}",
        assignments.assignments,
        tracked=False,
    ),
    Context(r"(?i)identified\s{1,3}(?:with\s{1,3}\S{1,40}\s{1,3})?by\s{1,3}", headers.identified),
    Context(r"(?i)(?:bearer|ssws)[ \t=:]{1,3}[A-Za-z0-9_~+/.\-]{12}", headers.bearer),
    Context(
        r"(?i)authorization[\"'\\\])]{0,5}\s{0,3}(?:[:=,]|=>)\s{0,3}[^\n]{8}", headers.authorization
    ),
    Context(f"(?:{headers.FOREIGN})", headers.foreign),
    Context(r"thin:[A-Za-z0-9_$#]{1,32}/", headers.oracle),
    Context(r"(?:add_user|change_password|authenticate_user)\s", commands.add_user),
    Context(r"(?i)basic[ ]{1,2}[A-Za-z0-9+/]{8}", headers.basic),
    Context(r"(?i)cookies?[\"'\\]{0,3}\s{0,2}[:=]\s{0,2}[^\n]{16}", headers.cookies, reach=4096),
    Context(
        r"[A-Za-z][A-Za-z0-9+.\-]{1,15}://[^\s/@:\"'<>`]{0,64}:[^\s/\"'<>`]{2,128}@",
        headers.url,
        tracked=False,
    ),
    Context(
        r":(?:[0-9]{2,5}|\*):[A-Za-z0-9_*\-]{1,32}:[A-Za-z0-9_*\-]{1,32}:[^\s:]{6}", headers.pgpass
    ),
    Context(r"\s-p[ =]?\\{0,2}[\"']?[^\s\"'\\=\-/.][^\s\"'\\]{3}", commands.minus_p),
    Context(
        r"\s(?:-u|--user|-a|--auth|-U|--proxy-user)[ =]?\\{0,2}[\"']?[^\s:\"'\\/\-]{1,64}"
        r":[^\s\"'\\/]{4}",
        commands.user_option,
    ),
    Context(
        r"(?:redis-cli|ldapsearch|ldapmodify|ldapadd|unzip|mosquitto_(?:pub|sub)|sqlcmd|htpasswd)[^\n]{0,4}",
        commands.other_options,
    ),
    Context(r"\|\s{0,3}sudo\s{1,3}-", commands.sudo),
    Context(
        rf"(?i)(?:name|key)[\"'\\]{{0,3}}\s{{0,2}}[:=]\s{{0,2}}[\"'\\]{{0,3}}"
        rf"[\w.\-]{{0,32}}{_KEYWORD}{_TAIL}[\"'\\]{{0,3}}[,\s]",
        assignments.paired_values,
        tracked=False,
    ),
    Context(r"(?i)(?:mnemonic|(?:seed|recovery|secret)[ _\-]?phrase)", headers.seed_phrase),
)
