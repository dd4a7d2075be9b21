"""`python -m engines.loopback_checks ENGINE [CLUSTER]`: an engine on this machine listens on loopback only."""

from __future__ import annotations

import sys

import psutil

from tenor.engines.choose import make_engine
from tenor.engines.settings import EngineSettings


def check_loopback(name: str, cluster: str | None = None) -> None:
    engine = make_engine(EngineSettings(name, workers=1, cluster=cluster))
    try:
        me = psutil.Process()
        found = [socket for process in (me, *me.children(recursive=True)) for socket in process.net_connections("inet")]
        listening = {socket.laddr.ip for socket in found if socket.status == psutil.CONN_LISTEN}
    finally:
        engine.close()
    assert listening and listening <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}, listening


if __name__ == "__main__":
    check_loopback(*sys.argv[1:])
