"""The keys of a stored table in a worker, as a vectorised function that follows a refresh of the table.

The keys travel with the query. A table that is refreshed while the query runs is written to a file whose name is the
table's own token: no other table, and no table of another program, ever has that name.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from thalweg.spark.filters.worker.judges import PredicateError
from thalweg.spark.folder import StateFolder
from thalweg.tables.keys import KeySet

MOST_TABLES = 32  # that a worker process keeps ready to be looked up in

# Of this process: tables by the digest of their content, and refreshed tables by their token, with the file's version.
_tables: OrderedDict[str, KeySet] = OrderedDict()
_refreshed: OrderedDict[str, tuple[object, KeySet]] = OrderedDict()


class StoredKeys:
    """Whether keys are in a stored table.

    `content` gives the keys as bytes, with their digest; it is asked only when the query is sent to workers.
    """

    def __init__(self, keys: KeySet, content: Callable[[], tuple[str, bytes]], folder: str, token: str) -> None:
        self._keys = keys
        self._content = content
        self._folder = folder
        self._token = token

    def __call__(self, *columns: pa.Array) -> pa.BooleanArray:  # noqa: D102 - the class says it
        return self._keys.contains(columns)

    def begin_task(self) -> None:
        """Take the keys of the refreshed table, if it was refreshed."""
        folder = StateFolder(self._folder)
        version = folder.version(self._token)
        if version is None:
            return
        known_version, keys = _refreshed.get(self._token, (None, self._keys))
        if known_version != version:
            for content in folder.read([self._token]).values():
                try:
                    keys = KeySet.from_bytes(content)
                except ValueError as error:
                    place = f"{self._folder}/{self._token}"
                    raise PredicateError(f"the refreshed table in {place} cannot be used: {error}") from None
                _keep(_refreshed, self._token, (version, keys))
        self._keys = keys

    def __reduce__(self) -> tuple[Any, ...]:
        return _stored_keys, (*self._content(), self._folder, self._token)


def _stored_keys(digest: str, content: bytes, folder: str, token: str) -> StoredKeys:
    """In a worker: the keys, made once in a process however many tasks bring them."""
    keys = _tables.get(digest) or KeySet.from_bytes(content)
    _keep(_tables, digest, keys)
    return StoredKeys(keys, lambda: (digest, content), folder, token)


def _keep(kept: OrderedDict[str, Any], name: str, value: object) -> None:
    """Keep the tables that were used last."""
    kept.pop(name, None)
    kept[name] = value
    while len(kept) > MOST_TABLES:
        kept.popitem(last=False)
