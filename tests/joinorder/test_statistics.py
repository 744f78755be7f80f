"""Statistics from files and beside text: what is understood, and what is said of the rest."""

import json
from pathlib import Path
from typing import Any

import pytest

from thalweg.joinorder import GraphShape
from thalweg.joinorder import statistics as module
from thalweg.joinorder.statistics import graph_of, graph_of_text, read_statistics

RATES = {"A": 5, "B": 7, "C": 9}
SHARES = {"A.k = B.k": 0.1, "B.k = C.k": 0.2}


def test_the_example_of_the_documentation_is_read(tmp_path: Path) -> None:
    text = (module.__doc__ or "").partition("```toml\n")[2].partition("```")[0]
    path = tmp_path / "join.toml"
    path.write_text(text)
    graph = read_statistics(path)
    assert graph.names == ("R1", "R2", "R3")
    assert graph.sizes.tolist() == [750, 400, 540]
    assert graph.shape is GraphShape.COMPLETE
    assert graph.redundant


def test_json_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "join.json"
    path.write_text(
        json.dumps(
            {"rates": RATES, "selectivities": SHARES, "equalities": "reduced", "windows": {"A": 2, "B": 1, "C": 1}}
        )
    )
    graph = read_statistics(path)
    assert graph.shape is GraphShape.LINEAR
    assert graph.sizes.tolist() == [10, 7, 9]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], r"statistics are a table with rates, windows, selectivities, equalities, not \[\]"),
        ({"rate": {}}, "there is no 'rate' in statistics; write rates"),
        ({"selectivities": SHARES}, "statistics need 'rates': a table like"),
        ({"rates": RATES}, "statistics need 'selectivities': a table like"),
        ({"rates": RATES, "selectivities": {}}, "statistics need 'selectivities'"),
        ({"rates": RATES | {"A": "5"}, "selectivities": SHARES}, "the rate of A is a number, not '5'"),
        ({"rates": RATES | {"A": True}, "selectivities": SHARES}, "the rate of A is a number, not True"),
        ({"rates": RATES | {"A": 0}, "selectivities": SHARES}, "the rate of A is a number above 0, not 0"),
        ({"rates": RATES, "selectivities": SHARES, "windows": "1 hour"}, "the window is a number, not '1 hour'"),
        ({"rates": RATES, "selectivities": SHARES, "windows": {"A": 1}}, "what is the window of B"),
        ({"rates": {"A": 1}, "selectivities": {"A.k = B.k": 0.1}}, "there is no stream 'B'; Streams: A"),
        ({"rates": RATES, "selectivities": {"A.k = B.k": [0.1]}}, "of 'A.k = B.k' is a number"),
        ({"rates": RATES, "selectivities": {"A.k = B.k": 0.1, "B C": 0.1}}, "names no pair of streams; write all"),
        ({"rates": RATES, "selectivities": {"A": 0.1}}, "'A' names no pair of streams"),
        ({"rates": RATES, "selectivities": {"A D": 0.1}}, "there is no stream 'D'"),
        ({"rates": RATES, "selectivities": {"A B": 1.5}}, "at most 1, not 1.5"),
        ({"rates": RATES, "selectivities": SHARES, "equalities": "all"}, "written, reduced, closed, not 'all'"),
    ],
)
def test_bad_statistics_say_what_to_write(data: Any, message: str) -> None:  # noqa: ANN401 - a file's content
    with pytest.raises(ValueError, match=message):
        graph_of(data)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"none.toml cannot be read: No such file"):
        read_statistics(tmp_path / "none.toml")
    for name, kind in (("bad.toml", "TOML"), ("bad.json", "JSON")):
        (tmp_path / name).write_text("{")
        with pytest.raises(ValueError, match=f"{name} is not {kind}: "):
            read_statistics(tmp_path / name)
    (tmp_path / "empty.json").write_text("{}")
    with pytest.raises(ValueError, match=r"empty.json: statistics need 'rates'"):
        read_statistics(tmp_path / "empty.json")


def test_numbers_beside_a_condition() -> None:
    graph = graph_of_text(
        "B.k = A.k AND B.k = C.k", ["A=3", "B = 2.5"], ["C=60"], ["B.k = A.k = 0.5"], equalities="reduced"
    )
    assert graph.rates.tolist() == [3, 2.5, 1]
    assert graph.sizes.tolist() == [3, 2.5, 60]
    assert [one.selectivity for one in graph.predicates] == [0.5, 0.1]
    with pytest.raises(ValueError, match=r"the join condition has no 'A.l = B.l'"):
        graph_of_text("A.k = B.k", selectivities=["A.l = B.l = 0.5"])


@pytest.mark.parametrize("name", ["deep.json", "deep.toml"])
def test_a_file_that_nests_too_deep_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("[" * 100_000 if name.endswith("json") else "rates = " + "[" * 100_000)
    with pytest.raises(ValueError, match=r"nests too deep|is not (JSON|TOML)"):
        read_statistics(path)


def test_a_condition_that_nests_too_deep_is_refused() -> None:
    with pytest.raises(ValueError, match="nests too deep"):
        graph_of_text("(" * 500 + "A.k = B.k" + ")" * 500)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rates": {"A": 10**400, "B": 1}}, "the rate of A is too large a number"),
        ({"selectivities": {"A B": []}}, "'A B' has no selectivity"),
        ({"equalities": "nonsense"}, "equalities are one of written, reduced, closed, not 'nonsense'"),
        ({"equalities": ["closed"]}, "equalities are one of"),
    ],
)
def test_content_that_used_to_be_dropped_or_to_overflow_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        graph_of({"rates": {"A": 5, "B": 7}, "selectivities": {"A B": 0.1}} | changed)
