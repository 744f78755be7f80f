"""The tests of this folder are loops over many tuples: their kernels are compiled, once for all of them.

That plain and compiled kernels agree is tested in `test_kernels.py`, in processes of their own.
"""

import pytest

from thalweg.kernels import ORDERING, compile_kernels


@pytest.fixture(scope="session", autouse=True)
def _compiled() -> None:
    compile_kernels(ORDERING)
