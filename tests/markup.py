"""What a viewer of Markdown makes of a page: which texts it shows, and what in it is alive."""

from __future__ import annotations

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

_VIEWER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
_ALIVE = {"image", "link_open", "html_inline", "html_block"}
_MADE_A_LINK = re.compile(r"(?:https?://|www\.)[\w.-]|[-.\w+]@[-\w]+\.[-\w]", re.IGNORECASE)
"""What viewers of GitHub's dialect make links of in the text that is left."""


def tokens_of(page: str) -> Iterator[Token]:
    """Yield a page's tokens, those within lines after their line's."""
    for token in _VIEWER.parse(page):
        yield from (token, *(token.children or ()))


_OUR_PAGE = re.compile(r"http://127\.0\.0\.1:3000/(?:weeks/\d{4}-\d\d-\d\d|sessions/[\w.%~-]+)")
_OUR_PICTURE = re.compile(r"data:image/png;base64,[\w+/=]+")


def _is_ours(token: Token) -> bool:
    source, target = (str(token.attrs.get(name, "")) for name in ("src", "href"))
    return bool(_OUR_PICTURE.fullmatch(source) or _OUR_PAGE.fullmatch(target))


def signs_of_life(page: str) -> list[str]:
    """Return the images, links and HTML that a viewer would make of a page, our own apart."""
    return [
        token.content or str(token.attrs)
        for token in tokens_of(page)
        if (token.type in _ALIVE and not _is_ours(token))
        or (token.type == "text" and _MADE_A_LINK.search(token.content))
    ]
