from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from tests.dashboard import samples

from thalweg.dashboard.svg import graph, html_of, ladder

NAME = "<script>alert(1)</script> & \"quoted\" 'name'"


@pytest.mark.parametrize("name", ["is new", NAME, samples.HOSTILE, "a" * 500, ""])
def test_a_ladder_is_well_formed_and_names_are_text(name: str) -> None:
    root = ET.fromstring(ladder(samples.where(order=[name, "b", "c"], written=["b", name, "c"])))  # noqa: S314 - ours
    assert not root.findall(".//{*}script")
    assert {element.tag.partition("}")[2] for element in root.iter()} == {"svg", "rect", "text"}
    texts = [element.text or "" for element in root.iter() if element.tag.endswith("text")]
    assert texts[0] == "1"
    assert name[:20] in texts[1]
    assert "Python · written at place 2" in texts


@pytest.mark.parametrize("count", [2, 3, 4, 7])
def test_a_graph_is_well_formed_for_any_number_of_inputs(count: int) -> None:
    inputs = [f"{NAME}{number}" for number in range(count)]
    root = ET.fromstring(graph(samples.join(inputs=inputs)))  # noqa: S314 - ours
    assert len(root.findall("{*}line")) == count - 1
    assert len(root.findall("{*}rect")) == count


def test_the_html_of_an_explanation_has_pictures_and_text() -> None:
    told = {"wheres": [samples.where()], "joins": [samples.join()], "sessions": []}
    page = html_of(told, f"where: {NAME}")
    assert page.count("<svg") == 2
    assert "<script>" not in page


def test_nothing_known_yet_is_said() -> None:
    description = samples.where()
    for predicate in description["predicates"]:
        predicate.update(dict.fromkeys(("drop_rate", "profile_drop_share", "rows_seen")))
    assert "nothing known yet" in ladder(description)
