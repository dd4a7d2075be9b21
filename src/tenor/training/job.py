"""What every worker of a run is told, as JSON: nothing is pickled."""

from __future__ import annotations

import json
from dataclasses import dataclass

from tenor.training.settings import TrainSettings


@dataclass(frozen=True)
class Job:
    data: str
    out: str
    settings: TrainSettings
    resume: bool

    def to_json(self) -> str:
        return json.dumps({**vars(self), "settings": vars(self.settings)})

    @classmethod
    def from_json(cls, text: str) -> Job:
        values = json.loads(text)
        return cls(**{**values, "settings": TrainSettings(**values["settings"])})
