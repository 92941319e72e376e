"""Jinja set-up of the pages: filters, globals, and rendering.

Everything from a session is data: it is escaped, and control characters, which a terminal or a
reader's eye would obey, are shown as U+FFFD, in every page alike.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any, cast
from urllib.parse import parse_qsl

from fastapi import Depends, HTTPException, Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from debrief.door.people import Person
from debrief.errors import without_controls
from debrief.lake import Lake
from debrief.markdown import counted, interval
from debrief.scoring.verdict import NOT_REVIEWED, VERDICT_LABELS
from debrief.settings import DAGSTER_PATH, Settings
from debrief.view import links
from debrief.view.assessment import VERDICT_TONES
from debrief.view.index import Index
from debrief.view.marks import marked
from debrief.view.query import MARK, UNMARK
from debrief.view.reviewing import certificates_of, offered_review
from debrief.view.wording import EVENT_LABELS, WORK_LABELS, ShownVerdict, verdict_in_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from debrief.certification import Certificate
    from debrief.review_offer import ReviewOffer
    from debrief.scoring.verdict import VerdictName
    from debrief.view.indexed import SessionRow

_SHORT_ID = 8
_LONGEST_FORM = 100_000
"""Bytes of a form."""
_LONGEST_CODE = 10_000
"""Characters of code whose words are marked by kind."""
_LONGEST_TEXT = 50_000
"""Characters of any one text on a page."""
_GOOD, _FAIR = 0.7, 0.45
"""Scores from which on a chip is green, or amber; red below."""


class PageContext:
    """What a page is made from: a parameter of every page's function.

    Args:
        request: that is answered.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        state = request.app.state
        self.lake: Lake = state.lake
        self.settings: Settings = state.settings
        self.index: Index = state.index
        self.person: Person = request.state.person
        self.index.follow()

    @property
    def certificates(self) -> Mapping[str, Certificate]:
        """Return what each reviewer's verdicts are worth, by name."""
        return certificates_of(self.lake, self.request.app.state.__dict__)

    @property
    def certified(self) -> list[str]:
        """Return the reviewers whose verdicts may be ranked."""
        return [name for name, one in self.certificates.items() if one.is_certified]

    @property
    def offer(self) -> ReviewOffer | None:
        """Return what can be offered to have sessions reviewed; None where nothing can."""
        return offered_review(self.lake, self.settings, self.request.app.state.__dict__)

    def verdict(self, row: SessionRow) -> ShownVerdict:
        """Return the verdict on a session in words, for the person who looks at the page."""
        return verdict_in_words(row.verdict, row.basis, row.reviewer, self.person.name)

    def changed(self, what: str) -> None:
        """Tell the door what this request has changed; no words that somebody typed."""
        self.request.state.change = what

    def render(self, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        """Return a page.

        Args:
            template: a file in ``templates/``; it extends ``base.html`` and takes ``title``.
            status: of the answer.
            values: what the template shows.
        """
        text = (
            environment()
            .get_template(template)
            .render(
                page=self,
                path=self.request.url.path,
                progress=self.index.progress,
                dagster=DAGSTER_PATH if self.request.state.dagster else "",
                lake=self.lake.url,
                **values,
            )
        )
        return HTMLResponse(text, status)


Page = Annotated[PageContext, Depends(PageContext)]


async def _form(request: Request) -> dict[str, str]:
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _LONGEST_FORM:
            raise HTTPException(413, f"is longer than {_LONGEST_FORM:,} bytes")
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))


Form = Annotated[dict[str, str], Depends(_form)]
"""The fields of a form that was posted, by name."""


@cache
def environment() -> Environment:
    """Return the templates' environment; a page's module may add filters of its own."""
    made = Environment(
        loader=PackageLoader("debrief.view"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_without_controls,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["links"] = links
    made.globals["event_labels"] = EVENT_LABELS
    made.globals["work_labels"] = WORK_LABELS
    verdicts = verdict_words, verdict_class
    scores, moments = (score, score_class, signed), (time, day, week, seconds)
    texts = (tokens, usd, counted, short_id, words, clause, markdown, marked, excerpt)
    made.filters["estimate"] = partial(interval, none="–")
    made.filters |= {each.__name__: each for each in (*verdicts, *scores, *moments, *texts)}
    return made


def _without_controls(value: Any) -> Any:
    if type(value) is not str:
        return value
    cut = f"{value[:_LONGEST_TEXT]}…" if len(value) > _LONGEST_TEXT else value
    return without_controls(cut)


def verdict_words(name: str) -> str:
    """Return a verdict in a few words; ``not reviewed`` where nobody gave one."""
    return VERDICT_LABELS[cast("VerdictName", name)] if name in VERDICT_LABELS else NOT_REVIEWED


def verdict_class(name: str) -> str:
    """Return the class of a verdict's chip: ``good``, ``calm``, ``fair``, ``bad`` or ``none``."""
    return VERDICT_TONES.get(cast("VerdictName", name), "none")


def score(value: float | None) -> str:
    """Return a score from 0 to 1 as people read it; a dash where there is none."""
    return "–" if value is None else f"{value:.2f}"


def score_class(value: float | None) -> str:
    """Return the class of a score's chip: ``good``, ``fair``, ``bad`` or ``none``."""
    if value is None:
        return "none"
    value = round(value, 2)  # as it is shown
    return "good" if value >= _GOOD else "fair" if value >= _FAIR else "bad"


def time(moment: datetime | None) -> str:
    """Return a time in UTC to the minute."""
    return "–" if moment is None else f"{moment:%Y-%m-%d %H:%M}"


def day(moment: date | None) -> str:
    """Return a day, such as ``3 Nov 2026``."""
    return "–" if moment is None else f"{moment.day} {moment:%b %Y}"


def tokens(number: float | None) -> str:
    """Return a number of tokens in three digits: ``812``, ``45.3k``, ``1.20M``.

    >>> tokens(45_310)
    '45.3k'
    """
    if number is None:
        return "–"
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            value = number / size
            return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}{unit}"
    return f"{number:.0f}"


def usd(amount: float | None) -> str:
    """Return money: ``$0.42``, ``$1,234``; a dash where it is not known.

    >>> usd(0.004), usd(12.3)
    ('< $0.01', '$12.30')
    """
    if amount is None:
        return "–"
    if 0 < amount < 0.005:
        return "< $0.01"
    return f"${amount:,.0f}" if amount >= 1_000 else f"${amount:,.2f}"


def seconds(number: float | None) -> str:
    """Return a length of time in its two largest units.

    >>> seconds(3_700)
    '1 h 1 min'
    """
    if number is None:
        return "–"
    whole = round(number)
    parts = ((whole // 86_400, "d"), (whole // 3_600 % 24, "h"), (whole // 60 % 60, "min"))
    shown = [f"{count} {unit}" for count, unit in parts if count]
    return " ".join(shown[:2]) or f"{whole} s"


def week(monday: str) -> str:
    """Return a week, named by its Monday, as people say it.

    >>> week("2026-10-26")
    '26 Oct – 1 Nov 2026'
    """
    first = date.fromisoformat(monday)
    last = first + timedelta(days=6)
    begin = f"{first.day}" if first.month == last.month else f"{first.day} {first:%b}"
    begin += f" {first.year}" if first.year != last.year else ""
    return f"{begin} – {last.day} {last:%b %Y}"


def signed(number: float | None) -> str:
    """Return a change with its sign: ``+0.12``, ``−0.06``, ``±0``."""
    if number is None:
        return "–"
    text = f"{abs(number):.2f}"
    return "±0" if text == "0.00" else f"{'+' if number > 0 else '−'}{text}"


def excerpt(text: str) -> Markup:
    """Return an excerpt of a search, with what was found marked."""
    shown = escape(without_controls(" ".join(text.split())))
    return Markup(shown.replace(MARK, Markup("<mark>")).replace(UNMARK, Markup("</mark>")))


def short_id(session_id: str) -> str:
    """Return the beginning of an id, which is enough to find its session by."""
    return session_id[:_SHORT_ID]


def words(name: str) -> str:
    """Return a name of the code as words: ``task completion``."""
    return name.replace("_", " ")


def clause(text: str) -> Markup:
    """Return a clause about a session as HTML, with a capital, and with its code as code.

    >>> clause("`pytest` failed")
    Markup('<code>pytest</code> failed')
    """
    shown = without_controls(text)
    parts = (f"{shown[:1].upper()}{shown[1:]}").split("`")
    if len(parts) % 2 == 0:  # a backtick of the session's own words
        return escape("`".join(parts))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 else part
        for number, part in enumerate(parts)
    )


def markdown(text: str) -> Markup:
    """Return Markdown as HTML; HTML in it is shown and not obeyed, and nothing is loaded."""
    return Markup(_reader().render(without_controls(text)))


@cache
def _reader() -> Any:
    from markdown_it import MarkdownIt

    made = MarkdownIt("commonmark", {"html": False, "highlight": highlighted})
    made.add_render_rule("link_open", _link)
    return made.enable("table").disable("image")


def _link(renderer: Any, tokens: Any, place: int, options: Any, env: Any) -> str:
    """Open a link: one to a file of somebody's machine leads nowhere, any other says not whence."""
    token = tokens[place]
    href = str(token.attrs.get("href", ""))
    if href.startswith(("https://", "http://", "#")):
        token.attrSet("rel", "noopener noreferrer")
    else:
        token.attrs = {"title": href}
    return str(renderer.renderToken(tokens, place, options, env))


def highlighted(code: str, language: str, attributes: str = "") -> str:
    """Return code as HTML with its words marked by kind; empty where that is not worth its time.

    Args:
        code: the text.
        language: its name, as Markdown has it, or a file's name.
        attributes: what else Markdown says of it.
    """
    if not language or len(code) > _LONGEST_CODE:
        return ""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
    from pygments.util import ClassNotFound

    try:
        find = get_lexer_for_filename if "." in language else get_lexer_by_name
        lexer = find(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return ""
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True, classprefix="code-")))
