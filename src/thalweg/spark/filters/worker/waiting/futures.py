"""A function of an answer that is still to come."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Before = TypeVar("Before")
After = TypeVar("After")


def then(future: Future[Before], function: Callable[[Before], After]) -> Future[After]:
    """The function's value of what a future will hold; cancelling it cancels the future as well.

    >>> first: Future[int] = Future()
    >>> second = then(first, lambda number: number + 1)
    >>> first.set_result(1)
    >>> second.result()
    2
    """
    follower: Future[After] = Future()

    def follow(done: Future[Before]) -> None:
        if done.cancelled():
            follower.cancel()
        if not follower.set_running_or_notify_cancel():
            return
        try:
            follower.set_result(function(done.result()))
        except Exception as error:  # noqa: BLE001 - it belongs to whoever asks for the result
            follower.set_exception(error)

    future.add_done_callback(follow)
    follower.add_done_callback(lambda done: future.cancel() if done.cancelled() else None)
    return follower
