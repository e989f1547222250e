"""A pytest plugin for nbval's runs of the notebooks: how many processes.

nbval executes the cells and compares what they print (``printed_numbers.cfg``); numbers and
figures are compared afterwards by ``python -m bertology_utils.compare``.
"""

import pytest

from bertology_utils.workers import KERNEL, count_workers


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_auto_num_workers(config):
    """What ``-n auto`` means: a process for each core, as far as memory reaches."""
    return count_workers(KERNEL)
