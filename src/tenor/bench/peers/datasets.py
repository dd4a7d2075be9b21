"""Datasets of the peers: reviews in memory, padded per batch, or rows of one length, read singly from HDF5."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset

from tenor.store.reader import open_split

Sample = tuple[Tensor, int, float]


class Ragged(Dataset[Sample]):
    """Every review is a tensor of its own length; a batch is padded to its longest review."""

    def __init__(self, job: dict[str, Any], split: str) -> None:
        with open_split(job["data"], split, verify=False) as rows:
            tokens, lengths = rows.gather(np.arange(len(rows)))
            self.labels = rows.labels.tolist()
        self.rows = torch.from_numpy(tokens.astype(np.int64)).split(lengths.tolist())

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Sample:
        return self.rows[index], len(self.rows[index]), float(self.labels[index])

    @staticmethod
    def collate(samples: list[Sample]) -> tuple[Tensor, Tensor, Tensor]:
        rows, lengths, labels = zip(*samples, strict=True)
        return pad_sequence(list(rows), batch_first=True), torch.tensor(lengths), torch.tensor(labels)


class Fixed(Dataset[Sample]):
    """Rows of one length in an HDF5 file, read one by one, as the course projects do."""

    def __init__(self, job: dict[str, Any], split: str) -> None:
        self.file = h5py.File(job["file"], "r")[split]

    def __len__(self) -> int:
        return len(self.file["labels"])

    def __getitem__(self, index: int) -> Sample:
        tokens = torch.from_numpy(self.file["tokens"][index].astype(np.int64))
        return tokens, int((tokens != 0).sum()), float(self.file["labels"][index])

    @staticmethod
    def collate(samples: list[Sample]) -> tuple[Tensor, Tensor, Tensor]:
        rows, lengths, labels = zip(*samples, strict=True)
        return torch.stack(rows), torch.tensor(lengths), torch.tensor(labels)


def write_fixed(data: Path, file: Path, length: int) -> None:
    """Write prepared data in the form of the course projects: every row is cut or left-padded to one length."""
    with h5py.File(file, "w") as h5:
        for split in ("train", "valid"):
            with open_split(data, split, verify=False) as rows:
                tokens, lengths = rows.gather(np.arange(len(rows)))
                matrix = np.zeros((len(rows), length), dtype=np.int32)
                for row, review in zip(matrix, np.split(tokens, np.cumsum(lengths)[:-1]), strict=True):
                    row[length - min(len(review), length) :] = review[:length]
                group = h5.create_group(split)
                group["tokens"], group["labels"] = matrix, rows.labels
