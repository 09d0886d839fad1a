"""Three questions to the cheapest model of each provider whose key is set: `make live`.

It costs well below a cent per provider, and shows whether a provider still takes what we send and
reports what we record. Without a key, its provider is skipped.
"""

from pathlib import Path

import pytest

import numbench as nb
from numbench.core.secrets import key_from_environment, load_env_file
from numbench.journal.run_folder import read_run
from numbench.models.catalogue import bundled_models, find_model_provider
from numbench.models.prices import find_price
from numbench.models.providers import all_providers

pytestmark = pytest.mark.live

TASKS = ("minmax", "addition", "multiplication")
MAX_TOKENS = 4000
MAX_COST = 0.25
"""US dollars per provider, of which a run uses a small part."""


def cheapest_models() -> dict[str, tuple[str, str]]:
    """Return the cheapest named model of each provider, with its first level."""
    models: dict[str, tuple[float, str, str]] = {}
    for model in bundled_models():
        price = find_price(model.route)
        cost = price.output if price else float("inf")
        choice = (cost, model.name, next(iter(model.all_levels())))
        provider = find_model_provider(model.name).name
        models[provider] = min(choice, models.get(provider, choice))
    return {provider: (name, level) for provider, (_, name, level) in models.items()}


@pytest.mark.parametrize("provider", cheapest_models())
def test_a_provider_answers_and_reports_its_usage(provider: str, tmp_path: Path) -> None:
    load_env_file()
    model, level = cheapest_models()[provider]
    (variables,) = (each.key_variables for each in all_providers() if each.name == provider)
    if key_from_environment(variables) is None:
        pytest.skip(f"set {variables[0]}, then: make live")
    report = nb.run(
        model, reasoning=level, tasks=TASKS, limit=1, max_tokens=MAX_TOKENS, max_cost=MAX_COST,
        out=tmp_path / "run",
    )  # fmt: skip
    assert (report.answered, report.errors) == (len(TASKS), 0), report.last_error
    for response in read_run(tmp_path / "run").responses.values():
        assert response.text
        assert response.finish_reason in ("stop", "length")
        assert response.usage.source == "reported"
        assert response.usage.input and response.usage.generated
        assert response.served_model
        assert response.cost is not None


def test_every_hosted_provider_has_a_model_to_ask() -> None:
    hosted = {each.name for each in all_providers() if not each.in_process and each.key_variables}
    routers = {"litellm", "together_ai"}
    assert hosted - routers == cheapest_models().keys()
