"""Dagster resources: the configuration of a run as typed fields."""

from resources.servers import LangfuseResource, WebhookResource
from resources.stages import Stages, account_of, explained

__all__ = ["LangfuseResource", "Stages", "WebhookResource", "account_of", "explained"]
