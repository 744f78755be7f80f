"""Finds Python objects that a program file names as `package.module:object`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from thalweg.registry import hint

SHAPE = "write it like 'package.module:object'"


def named_object(name: str, folder: Path) -> Any:  # noqa: ANN401 - whatever has the name
    """The object with this name, or a ValueError; modules in the folder of the file can be imported, too.

    >>> named_object("os.path:joim", Path())
    Traceback (most recent call last):
        ...
    ValueError: the module 'os.path' has no 'joim'; did you mean 'join'?
    """
    module_name, colon, object_name = name.partition(":")
    if not colon or not all(part.isidentifier() for part in [*module_name.split("."), object_name]):
        raise ValueError(f"{name!r} names no object: {SHAPE}")
    module = _module(module_name, folder)
    if not hasattr(module, object_name):
        raise ValueError(f"the module {module_name!r} has no {object_name!r}{hint(object_name, dir(module))}")
    return getattr(module, object_name)


def _module(name: str, folder: Path) -> ModuleType:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
        importlib.invalidate_caches()
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise ValueError(
                f"there is no module {name!r}: install it, or put it into the folder {folder}; {SHAPE}"
            ) from None
        raise ValueError(f"the module {name!r} cannot be imported: {error}") from error
    except Exception as error:
        raise ValueError(f"the module {name!r} cannot be imported: {type(error).__name__}: {error}") from error
    if module.__file__ is not None and Path(module.__file__).is_relative_to(folder):
        from pyspark import cloudpickle

        # Workers cannot import a module of this folder, so that its functions are sent whole.
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return module
