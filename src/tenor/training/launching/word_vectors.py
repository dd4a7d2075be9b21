"""Word vectors that a run learns from its own data before the first step, so that the deep part starts from them."""

from __future__ import annotations

from pathlib import Path

from tenor.embedding.embed import embed
from tenor.embedding.settings import EmbedSettings
from tenor.embedding.vectors import CONFIG
from tenor.progress import Progress
from tenor.training.job import TrainingJob
from tenor.training.settings import OWN_VECTORS
from tenor.training.tasks.pretrained import start_vectors

EPOCHS = 3


def learn_vectors(job: TrainingJob, progress: Progress) -> Path | None:
    """Learn the vectors of `--embeddings auto`, unless the run already has them; return their folder if it is new.

    One process learns them, because the result is then the same to the bit in every run with the same seed.
    """
    settings = job.settings
    folder = start_vectors(settings, Path(job.out))
    if settings.embeddings != OWN_VECTORS or folder is None or (folder / CONFIG).exists():
        return None
    chosen = EmbedSettings(
        dim=settings.embedding_dim, epochs=EPOCHS, workers=1, seed=settings.seed, min_count=1, resume=folder.exists()
    )
    embed(job.data, folder, chosen, progress)
    return folder
