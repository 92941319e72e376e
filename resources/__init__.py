"""Dagster resources: the configuration of a run as typed fields."""

from resources.evaluators import EvaluatorResource, account_of
from resources.lake import LakeResource, ScopeResource, SessionStore, explained
from resources.servers import LangfuseResource, WebhookResource

__all__ = [
    "EvaluatorResource",
    "LakeResource",
    "LangfuseResource",
    "ScopeResource",
    "SessionStore",
    "WebhookResource",
    "account_of",
    "explained",
]
