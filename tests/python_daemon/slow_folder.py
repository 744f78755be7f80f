"""PySpark's daemon whose workers find shared folders slow, as on a network's disk, and note each look at them."""

import os
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from pyspark.daemon import manager

from thalweg.spark.folder import StateFolder

DELAY_SECONDS = 0.1  # some times what an object store takes
NOTES = "SLOW_FOLDER_NOTES"  # the variable with the name of the file that looks are noted in


def slow_down(notes: Path) -> None:
    """Make all folders slow in this process, and in processes that it forks."""
    for name in ("write", "versions", "version", "read", "delete"):
        setattr(StateFolder, name, _slow(getattr(StateFolder, name), notes))


def _slow(method: Callable[..., Any], notes: Path) -> Callable[..., Any]:
    @wraps(method)
    def slow(folder: StateFolder, *arguments: Any) -> Any:  # noqa: ANN401 - those of the method
        with notes.open("a") as file:
            file.write(f"{method.__name__} {folder.url}\n")
        time.sleep(DELAY_SECONDS)
        return method(folder, *arguments)

    return slow


if __name__ == "__main__":
    slow_down(Path(os.environ[NOTES]))
    manager()
