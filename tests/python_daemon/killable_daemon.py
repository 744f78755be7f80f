"""The preloaded daemon with workers that kill themselves at the worst moments: while one joins rows for another.

A file in the folder `THALWEG_CHAOS_MOMENTS` names the moment. The first worker that comes to it removes the file.
"""

from __future__ import annotations

import os
import signal
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import preloaded_daemon
from pyspark.daemon import manager

from thalweg.mjoin import Step
from thalweg.spark.joins.cell_owner import CellOwner, NewRows, OwnedCell, RemoteCell, RowsTaken

assert preloaded_daemon  # imported for the workers that are forked

MOMENTS = Path(os.environ["THALWEG_CHAOS_MOMENTS"])
take_in, receive = CellOwner._take_in, RemoteCell._receive  # noqa: SLF001 - the moments are inside


def end_if_told(moment: str) -> None:
    try:
        (MOMENTS / moment).unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def take_in_or_end(self: CellOwner, owned: OwnedCell, rows: NewRows, connection: Connection[Any, Any]) -> None:
    end_if_told("owner before its step")
    take_in(self, owned, rows, connection)
    end_if_told("owner after its step")


def receive_or_end(self: RemoteCell) -> Step | RowsTaken:
    end_if_told("asking worker")
    return receive(self)


CellOwner._take_in = take_in_or_end  # type: ignore[method-assign]  # noqa: SLF001 - as above
RemoteCell._receive = receive_or_end  # type: ignore[method-assign]  # noqa: SLF001 - as above

if __name__ == "__main__":
    manager()
