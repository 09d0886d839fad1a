"""A recorded run as a model: it answers each question as it did then."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.dataset.store import dataset_of_run
from bench.journal import read_run
from bench.models.base import Message, Settings
from bench.models.failures import failed
from bench.records import Completion, Failure


class ReplayModel:
    """The responses of a recorded run, found by the wording of the question."""

    def __init__(self, name: str, folder: Path) -> None:
        """BadInput where `folder` holds no run, or its dataset cannot be found."""
        self.name = name
        run = read_run(folder)
        self.info = run.info
        items = dataset_of_run(run.info.dataset, folder).by_id
        self._completions = {
            items[item_id].prompt: response
            for item_id, response in run.responses.items()
            if item_id in items
        }

    async def answer(self, messages: Sequence[Message], settings: Settings) -> Completion:
        """The recorded completion; a failure where the run has none for this question."""
        prompt = next(m.content for m in reversed(messages) if m.role == "user")
        recorded = self._completions.get(prompt)
        if recorded is None:
            return failed(Failure(kind="item", message="the recorded run has no response to this"))
        completion = Completion(
            **{name: getattr(recorded, name) for name in Completion.__struct_fields__}
        )
        if completion.error is None:
            return completion
        # Asking a record again cannot help, whatever the failure was.
        return failed(Failure(kind="item", message=completion.error.message))

    async def close(self) -> None:
        """Nothing is held open."""
