"""Hostile frames for the parameter server: random bytes, or valid frames with one mistake."""

from __future__ import annotations

import contextlib
import json
import random
import socket
from pathlib import Path
from typing import Any

import numpy as np
from fuzz.mutations import dump, hostile_value, mutate_bytes, mutate_json

from tenor.errors import WorkerError
from tenor.training.parameter_server import sockets
from tenor.training.parameter_server.messages import KINDS, MARK, PREFIX, Message, decode, frame_size

LIMIT = 1 << 24
DTYPES = ("<f4", "<f8", "<i2", "<i4", "<i8", ">f4", "O", "<U4", "V0", "|u1", "f4,f4", "<M8[s]", "", "x", None, 3)


def make_frame(rng: random.Random) -> bytes:
    """Return the bytes of one frame; its prefix holds the right lengths in most cases."""
    if rng.random() < 0.1:
        return rng.randbytes(rng.randrange(64))
    arrays = [
        np.zeros(rng.choice([(), (0,), (3,), (2, 2)]), rng.choice(["<f4", "<i8"])) for _ in range(rng.randrange(3))
    ]
    message = Message(rng.choice(KINDS), {"worker": 1, "token": "x" * 64, "step": 3, "loss": 0.5}, tuple(arrays))
    frame = b"".join(bytes(piece) for piece in message.encode())
    kind = rng.choice(["head", "head", "arrays", "arrays", "prefix", "bytes"])
    if kind == "bytes":
        return mutate_bytes(rng, frame)
    _, length, _ = PREFIX.unpack_from(frame)
    head, body = json.loads(frame[PREFIX.size : PREFIX.size + length]), frame[PREFIX.size + length :]
    if kind == "head":
        mutate_json(rng, head)
    elif kind == "arrays":
        head["arrays"] = [[rng.choice(DTYPES), _shape(rng)] for _ in range(rng.choice([1, 1, 2, 3000]))]
        body = rng.randbytes(rng.choice([0, 4, 8, 64]))
    text = dump(rng.choice([head] * 15 + [hostile_value(rng)])).rstrip(b"\n")
    prefix = PREFIX.pack(MARK, len(text), len(body))
    if kind == "prefix":
        wrong = [0, 1, 2**31, 2**32 - 1, len(text) + 1]
        prefix = PREFIX.pack(rng.choice([MARK, b"tnr2"]), rng.choice(wrong), rng.choice([*wrong, 2**63, 2**64 - 1]))
    return prefix + text + body


def _shape(rng: random.Random) -> Any:
    return rng.choice(_SHAPES) if rng.random() < 0.95 else hostile_value(rng)


_SHAPES: list[Any] = [
    *([], [0], [1], [2], [0, 2**62], [2**62, 0], [2**70], [-1], [True], [1.0], ["1"], [[1]], None, 4),
    *([1] * 70, [2**31, 2**31], [2**32, 2**32], [10**399]),
]


def check_decode(frame: bytes) -> None:
    """Check that decoding a frame gives a message or raises WorkerError, and nothing else."""
    try:
        if len(frame) >= PREFIX.size:
            frame_size(frame, LIMIT)
        message = decode(frame)
    except WorkerError:
        return
    assert message.kind in KINDS
    assert isinstance(message.values, dict)
    assert all(array.nbytes <= len(frame) for array in message.arrays)


def check_channel(rng: random.Random, folder: Path, count: int) -> None:
    """Send hostile frames with and without the token, then check that the server still hears a real worker."""
    meeting = folder / "meeting.json"
    channel = sockets.SocketChannel(meeting, num_workers=8, limit=LIMIT)
    address = json.loads(meeting.read_text("utf-8"))
    try:
        for _ in range(count):
            _say(channel, address["port"], _first_bytes(rng, bytes.fromhex(address["token"])))
        with contextlib.closing(sockets.SocketLine(meeting, 7, LIMIT, timeout=5.0)):
            events = (event for _ in range(100) for event in channel.poll(0.05))
            assert any(event.worker == 7 and event.message for event in events), "a worker was not heard"
    finally:
        channel.close()
        meeting.unlink()


def _first_bytes(rng: random.Random, token: bytes) -> bytes:
    """Return random bytes, or a mostly valid greeting followed by hostile frames."""
    if rng.random() < 0.4:
        return make_frame(rng)
    size = sockets.GREETING.size - len(MARK) - len(token)  # of the worker's number
    number = rng.choice([1, 2, 8, 255, 2**31, 2**32 - 1]).to_bytes(size, "big")
    told = rng.choice([token, token, token, token[:-1], bytes(len(token)), rng.randbytes(len(token))])
    greeting = rng.choice([MARK, MARK, MARK, b"tnr2"]) + number + told
    return greeting + b"".join(make_frame(rng) for _ in range(rng.randrange(3)))


def _say(channel: Any, port: int, data: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), 5) as stranger:
        stranger.settimeout(0.5)
        channel.poll(0.05)
        try:
            stranger.sendall(data[: 1 << 16])
            channel.poll(0.02)
        except OSError:
            return
    channel.poll(0.02)
