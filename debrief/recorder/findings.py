"""The secrets of one record: replaced text by text, and each counted once."""

from __future__ import annotations

from collections.abc import Sequence

from debrief.recorder.contracts import Redactions
from debrief.redaction import Finding, Redacted, Redactor
from debrief.redaction.rules import prefilter

_NONE = Redactions()


def suspicious(texts: Sequence[str]) -> set[int]:
    """Return the numbers of the texts in which ``Findings`` may find a secret.

    In the others there is no place that any rule looks at.
    """
    return set(prefilter().hits_in_each(texts))


class Findings:
    """The secrets that were replaced so far, each counted once wherever it occurs, whatever it
    is taken for there."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._found: dict[str, Finding] = {}

    def clean(self, text: str) -> str:
        """Return a text without its secrets; the very same one where it has none."""
        return self._noted(self._redactor.redact(text))

    def clean_json(self, text: str) -> str:
        """Return a JSON text without its secrets; the very same one where it has none."""
        return self._noted(self._redactor.redact_json(text))

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of the secrets, sorted, each once; none where nothing was found."""
        return tuple(sorted({finding.kind for finding in self._found.values()}))

    def counted(self, known: Redactions = _NONE) -> Redactions:
        """Return the secrets in numbers, with those that were ``known`` before."""
        found = self._found.values()
        return Redactions(
            count=known.count + len(found),
            unsure=known.unsure + sum(not finding.sure for finding in found),
            kinds=sorted({*known.kinds, *self.kinds}),
        )

    def _noted(self, result: Redacted) -> str:
        for finding in result.findings:
            digest = finding.placeholder.rpartition(":")[2]
            known = self._found.get(digest)
            if known is None or known.sure:
                self._found[digest] = finding
        return result.text
