"""The live page: what the queries of this user's programs do now, and did before.

Programs write events of their runs to a folder of the user (`event_log.py`, written by `recorder.py`); a server, in the
program or by itself, follows that folder (`store.py`) and shows it (`server.py`). Knows Spark only through
`thalweg.spark.runs` and `thalweg.spark.metrics`, and only in `recorder.py`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thalweg.dashboard.start import Dashboard


class _CallablePackage(ModuleType):
    """A package that can be called.

    When one of its modules is imported, Python binds the name `dashboard` in `thalweg` to this package, in place of the
    function.
    """

    def __call__(self, *shown: Any, **options: Any) -> Dashboard:  # noqa: ANN401 - as the function has them
        from thalweg.dashboard.start import dashboard

        return dashboard(*shown, **options)


sys.modules[__name__].__class__ = _CallablePackage
