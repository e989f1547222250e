"""A pytest plugin for nbval's runs of the notebooks: how many processes, and in which order.

nbval executes the cells and compares what they print (``printed_numbers.cfg``); numbers and
figures are compared afterwards by ``python -m bertology_utils.compare``.
"""

import pytest

from bertology_utils.workers import KERNEL, count_workers


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_auto_num_workers(config):
    """What ``-n auto`` means: a process for each core, as far as memory reaches."""
    return count_workers(KERNEL)


def pytest_collection_modifyitems(items):
    """Pages run before appendices, which look up what pages measured."""
    items.sort(
        key=lambda item: item.path.suffix == ".ipynb" and item.path.stem.split("_")[0].endswith("a")
    )
