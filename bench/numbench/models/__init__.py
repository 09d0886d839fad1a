"""Models: one protocol, `Model`, and the functions that open and describe models by name."""

# ruff: noqa: I001 - a module is named once
from numbench.models.base import (
    Api as Api,
    Message as Message,
    Model as Model,
    ModelTarget as ModelTarget,
    Request as Request,
    RequestSettings as RequestSettings,
    Server as Server,
    last_user_message as last_user_message,
)
from numbench.models.catalogue import ModelDescription as ModelDescription
from numbench.models.facts import (
    NamedModel as NamedModel,
    Price as Price,
    ReasoningLevel as ReasoningLevel,
)
from numbench.models.opening import (
    OpenedModel as OpenedModel,
    check_key as check_key,
    describe_model as describe_model,
    missing_key as missing_key,
    open_batch as open_batch,
    open_model as open_model,
)
from numbench.models.providers import (
    ModelProperties as ModelProperties,
    ProviderPlugin as ProviderPlugin,
)
