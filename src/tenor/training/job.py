"""The job that the launcher hands to every worker of a run, as JSON; nothing is pickled."""

from __future__ import annotations

import json
from dataclasses import dataclass

from tenor.training.settings import TrainSettings


@dataclass(frozen=True)
class TrainingJob:
    data: str  # the folder of prepared data, or the name of a task that reads none
    out: str  # the run folder
    settings: TrainSettings
    resume: bool  # whether to continue from a checkpoint in `out`

    def to_json(self) -> str:
        return json.dumps({**vars(self), "settings": vars(self.settings)})

    @classmethod
    def from_json(cls, text: str) -> TrainingJob:
        values = json.loads(text)
        return cls(**{**values, "settings": TrainSettings(**values["settings"])})
