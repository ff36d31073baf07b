from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest
from both import Both


@pytest.fixture(scope="session")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """Two organisations, each with a running driver."""
    found = Both(pathlib.Path(tmp_path_factory.mktemp("both")))
    yield found
    found.close()
