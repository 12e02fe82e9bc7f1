"""What the tests of special functions share: widths of the types that they run with."""

import pytest

from pullback.util import config


@pytest.fixture(params=[32, 64])
def bits(request):
    """The test runs with types of so many bits."""
    with config.enable_x64(request.param == 64):
        yield request.param
