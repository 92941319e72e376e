"""Content of messages: a string, or a list of blocks of the Anthropic kind."""

from __future__ import annotations

from typing import Any


def text_of(content: Any) -> str:
    """Return the text of a message's or a tool result's content, one block a line.

    Images and documents leave a mark in brackets; thinking leaves none.
    """
    if type(content) is str:
        return content
    if type(content) is not list:
        return ""
    if len(content) == 1:
        return _text_of_block(content[0])
    return "\n".join(filter(None, map(_text_of_block, content)))


def words_of(content: Any) -> list[str]:
    """Return the texts alone, without marks for images: what a person typed, block by block."""
    if type(content) is str:
        return [content]
    if type(content) is not list:
        return []
    words = []
    for block in content:
        if type(block) is str:
            words.append(block)
        elif type(block) is dict and block.get("type") == "text":
            text = block.get("text")
            if type(text) is str:
                words.append(text)
    return words


def images_in(content: Any) -> int:
    """Return how many images the content holds."""
    if type(content) is not list:
        return 0
    return sum(type(block) is dict and block.get("type") == "image" for block in content)


def _text_of_block(block: Any) -> str:
    if type(block) is str:
        return block
    if type(block) is not dict:
        return ""
    text = block.get("text")
    if type(text) is str:
        return text
    kind = block.get("type")
    if kind in ("image", "document"):
        return f"[{kind}]"
    if kind == "tool_reference":
        return f"[tool {block.get('tool_name') or block.get('name') or ''}]"
    return ""
