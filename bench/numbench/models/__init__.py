"""Models: one protocol, `Model`, and the functions that open models by name."""

from numbench.models.base import (
    Api,
    BatchService,
    Message,
    Model,
    Request,
    RequestSettings,
    Server,
    last_user_message,
)
from numbench.models.catalogue import ModelDescription
from numbench.models.facts import NamedModel, Price, ReasoningLevel
from numbench.models.opening import OpenedModel, describe_model, open_batch, open_model
from numbench.models.providers import ModelProperties, ModelTarget, ProviderPlugin

__all__ = [
    "Api",
    "BatchService",
    "Message",
    "Model",
    "ModelDescription",
    "ModelProperties",
    "ModelTarget",
    "NamedModel",
    "OpenedModel",
    "Price",
    "ProviderPlugin",
    "ReasoningLevel",
    "Request",
    "RequestSettings",
    "Server",
    "describe_model",
    "last_user_message",
    "open_batch",
    "open_model",
]
