import subprocess
import sys

import numpy as np
import pytest

from thalweg.joinorder import GraphShape, JoinGraph, JoinStream, random_graph
from thalweg.joinorder.picture import picture, places


@pytest.mark.parametrize("shape", GraphShape)
@pytest.mark.parametrize("streams", [3, 12])
def test_every_stream_has_a_place_of_its_own(shape: GraphShape, streams: int) -> None:
    where = places(random_graph(shape, streams, np.random.default_rng(0)))
    assert where.shape == (streams, 2)
    assert len(np.unique(where.round(6), axis=0)) == streams


def test_a_path_is_drawn_from_end_to_end_and_a_hub_in_the_middle() -> None:
    path = JoinGraph.from_text("B.k = C.k AND C.l = A.l AND A.m = D.m")
    assert places(path)[:, 0].tolist() == [2, 0, 1, 3]
    star = JoinGraph.from_text("C.k = A.k AND C.l = B.l AND C.m = D.m")
    assert places(star)[2].tolist() == [0, 0]


def test_a_picture_names_streams_and_selectivities_and_is_always_the_same() -> None:
    graph = JoinGraph.from_statistics({"A$": 5, "B$": 7, "C": 9}, {("A$", "B$"): 0.125, ("B$", "C"): 0.5})
    image = picture(graph, "svg")
    for text in (b"A$", b"B$", b"0.125", b"linear join of 3 streams"):
        assert text in image
    assert image == picture(graph, "svg")
    assert picture(graph, "png").startswith(b"\x89PNG")
    assert picture(JoinGraph((JoinStream("A", 1.0),), ()), "svg")
    assert picture(random_graph("complete", 12, np.random.default_rng(0)), "svg")


def test_other_kinds_of_files_are_refused() -> None:
    with pytest.raises(ValueError, match="pictures are svg or png files, not 'gif'"):
        picture(JoinGraph((JoinStream("A", 1.0),), ()), "gif")


def test_matplotlib_is_imported_only_to_draw() -> None:
    script = "import sys, thalweg.joinorder.picture; print({'matplotlib', 'sqlglot'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
