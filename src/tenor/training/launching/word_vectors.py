"""Word vectors that a run learns from its own data before the first step, so that the deep part starts from them."""

from __future__ import annotations

from pathlib import Path

from tenor.embedding.embed import embed_as
from tenor.embedding.settings import EmbedSettings
from tenor.embedding.vectors import CONFIG
from tenor.progress import Progress
from tenor.training.job import TrainingJob
from tenor.training.settings import OWN_VECTORS
from tenor.training.tasks.pretrained import start_vectors
from tenor.training.tasks.rehearsal import seconds_of
from tenor.world import World

RATE = 0.025  # with which the presets were chosen
LONGEST_SHARE = 0.5  # of the time that is left
SHORTEST = 1e-3  # seconds: 0 would mean no limit


def learn_vectors(job: TrainingJob, progress: Progress) -> Path | None:
    """Learn the vectors of `--embeddings auto`, unless the run already has them; return their folder if it is new.

    One process learns them, because the result is then the same to the bit in every run with the same seed. Under
    --max-seconds they end after half of the time, should the estimate of the recipe have been too low.
    """
    settings = job.settings
    folder = start_vectors(settings, Path(job.out))
    if settings.embeddings != OWN_VECTORS or folder is None or (folder / CONFIG).exists():
        return None
    chosen = EmbedSettings(
        dim=settings.embedding_dim,
        epochs=settings.vector_epochs,
        lr=RATE,
        workers=1,
        seed=settings.seed,
        min_count=1,
        resume=folder.exists(),
    )
    left = settings.max_seconds - (seconds_of(Path(job.out)) if settings.all_rows else 0.0)
    limit = max(LONGEST_SHARE * left, SHORTEST) if settings.max_seconds else 0.0
    embed_as(World(), Path(job.data), folder, chosen, progress, limit)
    return folder
