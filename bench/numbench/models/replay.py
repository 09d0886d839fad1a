"""A recorded run as a model: `replay/FOLDER` gives each question its recorded response."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from numbench.dataset.store import Dataset, open_run_dataset
from numbench.errors import BadInput
from numbench.horizon.asked_items import asked_items
from numbench.journal import read_run
from numbench.models.base import Message, RequestSettings, last_user_message
from numbench.models.provider_errors import failed_completion
from numbench.models.providers import ModelProperties, ModelTarget, ProviderPlugin, ReasoningLevel
from numbench.records import PAPER, Completion, Failure
from numbench.transforms import variant_of_run


class ReplayModel:
    """The responses of a recorded run, by the wording of the question."""

    def __init__(self, target: ModelTarget) -> None:
        """Raise BadInput if the folder contains no run, or its dataset cannot be found.

        Also for a run with other prompts than the paper's, which would pass for answers to these.
        """
        self.name = target.name
        folder = Path(target.served_name)
        run = read_run(folder)
        if run.info.prompt.name != PAPER and run.info.source == "measured":
            raise BadInput(
                f"{folder}: a run with the prompts {run.info.prompt.label}; only runs with the "
                "paper's prompts can be replayed"
            )
        self.properties = ModelProperties(
            display=f"{run.info.display} (replay)", levels={run.info.reasoning: ReasoningLevel()}
        )
        dataset: Dataset
        if run.info.horizon is None:
            dataset = open_run_dataset(run.info.dataset, folder)
        else:
            ids = {response.item_id for response in run.responses.values()}
            dataset = asked_items(folder, run.info, ids)
        items, variant = dataset.by_id, variant_of_run(folder, run.info)
        self._completions = {
            variant.ask(items[item_id]).prompt: response
            for item_id, response in run.responses.items()
            if item_id in items
        }

    async def answer(self, messages: Sequence[Message], settings: RequestSettings) -> Completion:
        """Return the recorded completion, or a failure if the run has none for this question."""
        recorded = self._completions.get(last_user_message(messages))
        if recorded is None:
            return failed_completion(
                Failure(kind="item", message="the recorded run has no response to this question")
            )
        completion = Completion(
            **{name: getattr(recorded, name) for name in Completion.__struct_fields__}
        )
        if completion.error is None:
            return completion
        # A retry brings the same response, whatever the failure was.
        return failed_completion(Failure(kind="item", message=completion.error.message))

    async def close(self) -> None:
        """Do nothing: the model holds no resources."""


PROVIDER = ProviderPlugin(
    name="replay",
    open_model=ReplayModel,
    examples=("RUN",),
    in_process=True,
    deterministic=True,
    takes_prompts=False,
)
