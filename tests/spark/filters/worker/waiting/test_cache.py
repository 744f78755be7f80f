from __future__ import annotations

from pathlib import Path

import pytest

import thalweg as tw
from thalweg.spark.filters.worker.waiting.cache import Cache, FileCache, WorkerCache


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(params=["worker", "file"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def made(kind: str, folder: Path, clock: Clock, *, size: int | None = None, age: float | None = None) -> Cache:
    if kind == "worker":
        return WorkerCache(tw.cache(size=size, age=age), clock)
    return FileCache(tw.cache(file=folder / "answers", size=size, age=age), "is_even", clock)


def test_the_oldest_make_room(kind: str, tmp_path: Path) -> None:
    clock = Clock()
    cache = made(kind, tmp_path, clock, size=3)
    for number in range(6):
        clock.now += 1
        cache.put({bytes([number]): number % 2 == 0})
    assert cache.get([bytes([number]) for number in range(6)]) == {b"\x03": False, b"\x04": True, b"\x05": False}


def test_old_answers_are_asked_for_again(kind: str, tmp_path: Path) -> None:
    clock = Clock()
    cache = made(kind, tmp_path, clock, age=10)
    cache.put({b"a": None})
    clock.now = 10
    assert cache.get([b"a"]) == {b"a": None}
    clock.now = 10.1
    assert cache.get([b"a"]) == {}


def test_predicates_do_not_mix_in_a_file(tmp_path: Path) -> None:
    spec = tw.cache(file=tmp_path / "answers")
    FileCache(spec, "is_even").put({b"a": True})
    assert FileCache(spec, "is_odd").get([b"a"]) == {}
    assert FileCache(spec, "is_even").get(
        [bytes([number % 256, number // 256]) for number in range(2000)] + [b"a"]
    ) == {b"a": True}


def test_wrong_caches() -> None:
    with pytest.raises(ValueError, match="on a disk that all workers share"):
        tw.cache(file="s3://bucket/answers")
    for wrong in ("", 3):
        with pytest.raises(ValueError, match="file= is the path of a file"):
            tw.cache(file=wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="1 or more"):
        tw.cache(size=0)
    with pytest.raises(ValueError, match="above 0"):
        tw.cache(age=0)
    with pytest.raises(ValueError, match="age= is a number of seconds above 0, not 'day'"):
        tw.cache(age="day")  # type: ignore[arg-type]


def test_a_file_that_is_no_cache_says_what_to_pass(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no cache " * 1000)
    for file in (tmp_path / "notes.txt", tmp_path / "missing" / "answers.db"):
        with pytest.raises(ValueError, match=r"cannot be used \(.*\): pass a file= that tw.cache has made, or a new"):
            FileCache(tw.cache(file=file), "is_even")
