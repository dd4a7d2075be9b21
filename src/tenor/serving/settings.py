"""The settings of `tenor serve`."""

from __future__ import annotations

import dataclasses
import ipaddress

from tenor.errors import UsageError
from tenor.settings import Settings, setting, wrong_value

TOKEN_VARIABLE = "TENOR_TOKEN"
NETWORK, LIMITS, BATCHES = "Network", "Limits", "Batches"
_ABOVE_ZERO = (
    "batch_size",
    "max_wait_ms",
    "queue_size",
    "max_body_kb",
    "max_texts",
    "max_explained",
    "max_text_length",
    "request_seconds",
    "header_seconds",
    "idle_seconds",
    "max_connections",
    "drain_seconds",
)


@dataclasses.dataclass(frozen=True)
class ServeSettings(Settings):
    """Where the service listens, and what it accepts. Each field is an option of `tenor serve`.

    >>> ServeSettings(port=0).is_loopback
    True
    """

    host: str = setting("127.0.0.1", "Address to listen on. Every address but loopback needs a token.", group=NETWORK)
    port: int = setting(8000, "Port to listen on; 0 for any free port.", group=NETWORK)
    token_file: str | None = setting(
        None,
        "File with the bearer token that clients must send. Default: the variable TENOR_TOKEN, or no token.",
        group=NETWORK,
    )
    without_token: bool = setting(
        False, "Listen beyond loopback without a token. Anyone can then use the service.", group=NETWORK
    )

    batch_size: int = setting(64, "Texts that the model computes at a time.", group=BATCHES)
    batch_wait_ms: float = setting(2.0, "Milliseconds that a request waits for others to share a batch.", group=BATCHES)
    threads: int = setting(
        0, "Threads that compute; 0 for half of the cores. The rest is for connections.", group=BATCHES
    )

    max_wait_ms: float = setting(
        200.0,
        "Longest wait of a request in milliseconds. A request that would wait longer is refused (503).",
        group=LIMITS,
    )
    queue_size: int = setting(2048, "Refuse requests (503) while this many texts wait.", group=LIMITS)
    max_body_kb: int = setting(1024, "Maximum size of a request in kilobytes, also after decompression.", group=LIMITS)
    max_texts: int = setting(256, "Maximum number of texts in a request.", group=LIMITS)
    max_explained: int = setting(16, "Maximum number of texts in a request for explanations.", group=LIMITS)
    max_text_length: int = setting(20_000, "Maximum length of a text in characters.", group=LIMITS)
    request_seconds: float = setting(
        10.0,
        "Seconds that a client may take to send a body or to read answers, and the service to answer.",
        group=LIMITS,
    )
    header_seconds: float = setting(5.0, "Seconds that a client may take to send the head of a request.", group=LIMITS)
    idle_seconds: float = setting(60.0, "Seconds that a connection may be idle between requests.", group=LIMITS)
    max_connections: int = setting(
        4000, "Maximum number of connections. Above it, those that wait longest for a request are closed.", group=LIMITS
    )

    drain_seconds: float = setting(
        8.0, "Seconds that a stop by SIGTERM may take. For the first quarter, new connections are still accepted."
    )
    reload_seconds: float = setting(
        1.0, "Seconds between checks of the run folder for a new model; 0 turns reloading off."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in _ABOVE_ZERO:
            if not getattr(self, name) > 0:
                raise wrong_value(name, getattr(self, name), "give a number above 0")
        for name in ("batch_wait_ms", "reload_seconds", "threads"):
            if not getattr(self, name) >= 0:
                raise wrong_value(name, getattr(self, name), "give 0 or more")
        if not 0 <= self.port <= 65_535:
            raise wrong_value("port", self.port, "give a number from 0 to 65535")
        if self.max_texts > self.queue_size:
            remedy = f"give --queue-size at least {self.max_texts}, or lower --max-texts"
            raise UsageError(f"--max-texts {self.max_texts} is above --queue-size {self.queue_size}", remedy=remedy)

    @property
    def is_loopback(self) -> bool:
        """Whether only programs on this machine can reach the address."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False  # another name: it may lead anywhere
