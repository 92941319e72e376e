"""Take a command's options as one typed struct, whose fields declare them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from pydantic import BaseModel
from typer.models import ParameterInfo

Options = TypeVar("Options", bound=BaseModel)


def takes(options: type[Options]) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Return a decorator for a command's function that takes its options as one struct.

    Each field whose type is annotated with ``typer.Option`` or ``typer.Argument`` is an option.

    Args:
        options: the struct.
    """
    fields = {
        name: field
        for name, field in options.model_fields.items()
        if any(isinstance(each, ParameterInfo) for each in field.metadata)
    }
    hints = inspect.get_annotations(options, eval_str=True)
    for base in options.__mro__[1:]:
        if issubclass(base, BaseModel) and base is not BaseModel:
            hints = {**inspect.get_annotations(base, eval_str=True), **hints}

    def decorate(command: Callable[[Options], None]) -> Callable[..., None]:
        @wraps(command)
        def called(**given: Any) -> None:
            command(options(**{name: value for name, value in given.items() if value is not None}))

        keyword = inspect.Parameter.KEYWORD_ONLY
        parameters = [
            inspect.Parameter(name, keyword, default=field.get_default(), annotation=hints[name])
            for name, field in fields.items()
        ]
        changed: Any = called
        changed.__signature__ = inspect.Signature(parameters)
        changed.__annotations__ = {name: hints[name] for name in fields}
        return called

    return decorate
