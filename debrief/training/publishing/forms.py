"""The forms in which training sets are exported: a module each, registered here.

A new form needs a module with a ``FORM`` and an entry in ``FORMS``; ``debrief export`` and the
recorder's exports then have it.
"""

from __future__ import annotations

from debrief.errors import InputError
from debrief.training.model import SampleMetadata
from debrief.training.publishing import openai, preference, reward, sharegpt, trl
from debrief.training.publishing.columns import column_of
from debrief.training.publishing.form import Form, decoded, encoded

MESSAGES = Form(
    name="messages",
    reader="`datasets`, and whatever reads OpenAI's chat form",
    columns={
        "messages": ["json"],
        "tools": ["json"],
        "metadata": column_of(SampleMetadata),
    },
    note="The stored lines themselves, `arguments` as JSON text.",
    convert=lambda line, _: (line,),
    of_records=True,
)
FORMS: dict[str, Form] = {
    form.name: form
    for form in (
        MESSAGES,
        trl.FORM,
        openai.FORM,
        sharegpt.FORM,
        preference.FORM,
        reward.FORM,
    )
}
RECORD_FORMS = tuple(form.name for form in FORMS.values() if form.of_records)
"""Forms that recorded sessions can be exported in."""


def form_named(name: str) -> Form:
    """Return a form.

    Raises:
        InputError: there is none of that name.
    """
    if name not in FORMS:
        raise InputError(f"format {name}", "is not known", f"There are: {', '.join(FORMS)}.")
    return FORMS[name]


def in_form(name: str, line: bytes) -> bytes:
    """Return the line of a recorded session in one of ``RECORD_FORMS``, with its line end.

    Raises:
        InputError: there is no such form, or its readers would not take the line.
    """
    convert = form_named(name).convert
    if convert is None:
        raise InputError(f"format {name}", "makes no line of one record")
    try:
        (made,) = convert(decoded(line), {})
    except ValueError as error:
        raise InputError(f"format {name}", str(error)) from error
    return encoded(made)
