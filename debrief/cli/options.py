"""Take a command's options as one typed dataclass, whose fields declare them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from functools import wraps
from typing import Any, TypeVar, get_type_hints

from typer.models import ParameterInfo

Options = TypeVar("Options")


def takes(options: type[Options]) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Return a decorator for a command's function that takes its options as one dataclass.

    Each field whose type is annotated with ``typer.Option`` or ``typer.Argument`` is an option.

    Args:
        options: the dataclass.
    """
    hints = get_type_hints(options, include_extras=True)
    declared = _declared(options)
    empty, keyword = inspect.Parameter.empty, inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter(
            each.name,
            keyword,
            default=empty if each.default is MISSING else each.default,
            annotation=hints[each.name],
        )
        for each in fields(options)  # type: ignore[arg-type]
        if each.name in declared
    ]

    def decorate(command: Callable[[Options], None]) -> Callable[..., None]:
        @wraps(command)
        def called(**given: Any) -> None:
            command(options(**{name: value for name, value in given.items() if value is not None}))

        changed: Any = called
        changed.__signature__ = inspect.Signature(parameters)
        changed.__annotations__ = {each.name: each.annotation for each in parameters}
        return called

    return decorate


def option_names(options: type[Any]) -> dict[str, str]:
    """Return the options of a dataclass by field, each as it is typed."""
    return {
        name: _typed(info) or f"--{name.replace('_', '-')}"
        for name, info in _declared(options).items()
    }


def _declared(options: type[Any]) -> Mapping[str, ParameterInfo]:
    found = {}
    for name, hint in get_type_hints(options, include_extras=True).items():
        for each in getattr(hint, "__metadata__", ()):
            if isinstance(each, ParameterInfo):
                found[name] = each
    return found


def _typed(info: ParameterInfo) -> str:
    """Return an option's first name; Typer keeps the first word of an annotation as a default."""
    words = [info.default, *(info.param_decls or ())]
    names = (word for word in words if isinstance(word, str) and word.startswith("--"))
    return next(names, "").partition("/")[0]
