"""A plugin of pytest: puts pullback in jax's place if asked to, takes a sample, and writes each outcome at once.

A line when a test begins and one when it ends: what killed the process is the last test that began.
"""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path

import pytest

if os.environ.get("LIBRARY_SUITES_SIDE") == "pullback":
    import pullback

    pullback.install_as_jax()

_LOG = Path(os.environ["LIBRARY_SUITES_LOG"])
_MOST = int(os.environ["LIBRARY_SUITES_MOST"])


def _write(**line: object) -> None:
    with _LOG.open("a") as file:
        file.write(json.dumps(line) + "\n")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list) -> None:
    """Keep the tests whose names' checksums are least: the same ones on both sides."""
    kept = set(sorted((i.nodeid for i in items), key=lambda name: zlib.crc32(name.encode()))[:_MOST])
    items[:] = [i for i in items if i.nodeid in kept]


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """A file that does not import counts as one test that fails."""
    if report.failed:
        _write(test=f"{report.nodeid} (import)", outcome="failed", text=str(report.longrepr)[-4000:], seconds=0)


def pytest_runtest_logstart(nodeid: str) -> None:
    """A test begins."""
    _write(test=nodeid, outcome="began")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """A part of a test ended: setup and teardown matter only if they fail, or skip it."""
    if report.when == "call" or report.outcome != "passed":
        _write(
            test=report.nodeid,
            outcome=report.outcome,
            text="" if report.passed else str(report.longrepr)[-6000:],
            seconds=round(report.duration, 2),
        )
