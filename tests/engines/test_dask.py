"""The Dask engine: its certificate, and a cluster on two hosts."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from pathlib import Path

import pytest
from engines.installed import needs, run_module
from helpers.corpora import make_reviews, write_json_lines
from helpers.hosts import needs_hosts, two_hosts
from helpers.processes import finish, python, running
from preparation.job.test_prepare import hashes

from tenor.preparation.job.prepare import prepare
from tenor.preparation.settings import PrepareSettings


@needs("dask")
def test_other_users_cannot_use_our_own_dask_cluster() -> None:
    run_module("engines.stranger_checks")


@pytest.mark.soak
@needs_hosts
@needs("dask")
@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_dask_on_two_hosts_over_tls(tmp_path: Path) -> None:
    """The scheduler and the job run on one host, a worker on each; the bytes are those of the local engine."""
    corpus = [str(write_json_lines(tmp_path / f"{n}.jsonl", make_reviews(200, seed=n))) for n in range(4)]
    prepare(corpus, tmp_path / "expected", PrepareSettings(workers=1))
    ca, cert, key = _certificates(tmp_path)
    secured = ("--tls-ca-file", ca, "--tls-cert", cert, "--tls-key", key)
    with two_hosts() as hosts, contextlib.ExitStack() as stack:
        address = f"tls://{hosts[0].address}:8786"
        scheduler = ("scheduler", "--host", hosts[0].address, "--port", "8786", "--no-dashboard", "--protocol", "tls")
        stack.enter_context(
            running(hosts[0].command(*python("-m", "dask", *scheduler, *secured)), TMPDIR=str(tmp_path))
        )
        for host in hosts:
            worker = ("worker", address, "--host", host.address, "--nthreads", "1", "--no-dashboard", *secured)
            folder = ("--local-directory", str(tmp_path / host.name))
            stack.enter_context(running(host.command(*python("-m", "dask", *worker, *folder)), TMPDIR=str(tmp_path)))
        options = ("--engine", "dask", "--cluster", address, "--tls-ca", ca, "--tls-cert", cert, "--tls-key", key)
        command = python("-m", "tenor", "prepare", *corpus, "--out", str(tmp_path / "out"), "--json", *options)
        with running(hosts[0].command(*command)) as job:
            finish(job, 60)
    assert hashes(tmp_path / "out") == hashes(tmp_path / "expected")


def _certificates(folder: Path) -> tuple[str, str, str]:
    """The certificate of an authority, and a signed certificate with its key that all processes of a test use."""
    ca, ca_key, cert, key, request = (str(folder / name) for name in ("ca.pem", "ca.key", "me.pem", "me.key", "me.csr"))
    make = ("openssl", "req", "-newkey", "rsa:2048", "-nodes")
    sign = ("openssl", "x509", "-req", "-in", request, "-CA", ca, "-CAkey", ca_key, "-CAcreateserial", "-out", cert)
    for command in (
        (*make, "-x509", "-subj", "/CN=authority", "-keyout", ca_key, "-out", ca),
        (*make, "-subj", "/CN=host", "-keyout", key, "-out", request),
        sign,
    ):
        subprocess.run(command, check=True, capture_output=True, timeout=60)
    return ca, cert, key
