"""Certification: what a reviewer's verdicts are worth, measured by labels that people gave blind.

A reviewer is certified when both of its hit rates are known to reach ``REQUIRED``. Pages rank
sessions only by the verdicts of a certified one.
"""

from debrief.certification.certificate import (
    REQUIRED,
    Certificate,
    LabelledReview,
    Share,
    certify,
    corrected_rate,
)
from debrief.certification.labels import BlindLabel, blind_labels
from debrief.certification.shown import certificate_lines
from debrief.certification.store import certificates_in, waiting_sessions

__all__ = [
    "REQUIRED",
    "BlindLabel",
    "Certificate",
    "LabelledReview",
    "Share",
    "blind_labels",
    "certificate_lines",
    "certificates_in",
    "certify",
    "corrected_rate",
    "waiting_sessions",
]
