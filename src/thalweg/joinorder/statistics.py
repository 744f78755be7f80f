"""Statistics of a join, in a small file or beside its text, and clear errors for statistics that cannot be read.

The file is TOML or JSON. Rates are in tuples a second, windows in seconds, selectivities shares of all pairs of tuples.
`rates` names the streams. Predicates are equalities of attributes; where only pairs of streams are known, two names
take their place.

```toml
windows = 10                        # of all streams, or a table like rates; 1 if it is missing
equalities = "closed"               # or "reduced", "written": which of the equalities that follow to use

[rates]
R1 = 75
R2 = 40
R3 = 54

[selectivities]
"R1.pid = R2.pid" = 0.02            # or "R1 R2" = 0.02, or a list of several predicates' selectivities
"R2.pid = R3.pid" = 0.01
```
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from thalweg.joinorder.graph import DEFAULT_SELECTIVITY, JoinGraph
from thalweg.joinorder.text import Equalities, checked_equalities, parse_condition

KEYS = ("rates", "windows", "selectivities", "equalities")
EXAMPLES = {"rates": '{"R1": 75, "R2": 40}', "selectivities": '{"R1.pid = R2.pid": 0.02}'}


def read_statistics(path: Path) -> JoinGraph:
    """The join graph that a statistics file describes; TOML if its name ends in .toml, else JSON."""
    try:
        text = path.read_text()
        data = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{path} is not {'TOML' if path.suffix == '.toml' else 'JSON'}: {error}") from None
    except RecursionError:
        raise ValueError(f"{path} nests too deep; statistics are a table with {', '.join(KEYS)}") from None
    try:
        return graph_of(data)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def graph_of(data: object) -> JoinGraph:
    """The join graph of the file's content.

    >>> graph_of({"rates": {"A": 5, "B": 7, "C": 9}, "selectivities": {"A B": 0.1, "B C": [0.5, 0.2]}}).shape
    <GraphShape.LINEAR: 'linear'>
    >>> graph_of({"rates": {"A": 5, "B": 7}, "selectivities": {"A.k = B.k": 0.1}, "windows": 60}).sizes.tolist()
    [300.0, 420.0]
    """
    if not isinstance(data, Mapping):
        raise ValueError(f"statistics are a table with {', '.join(KEYS)}, not {data!r}")  # noqa: TRY004 - a file's content
    unknown = sorted(set(data) - set(KEYS))
    if unknown:
        raise ValueError(f"there is no {unknown[0]!r} in statistics; write {', '.join(KEYS)}")
    for key in ("rates", "selectivities"):
        if not isinstance(data.get(key), Mapping) or not data[key]:
            raise ValueError(f"statistics need {key!r}: a table like {EXAMPLES[key]}")
    rates = {name: _number(value, f"the rate of {name}") for name, value in data["rates"].items()}
    windows = data.get("windows", 1.0)
    windows = (
        {name: _number(value, f"the window of {name}") for name, value in windows.items()}
        if isinstance(windows, Mapping)
        else _number(windows, "the window")
    )
    selectivities = data["selectivities"]
    equalities = checked_equalities(data.get("equalities", Equalities.CLOSED))
    if all("=" in text for text in selectivities):
        return JoinGraph.from_text(
            " AND ".join(selectivities),
            rates,
            {text: _number(value, f"the selectivity of {text!r}") for text, value in selectivities.items()},
            windows,
            equalities,
        )
    return JoinGraph.from_statistics(
        rates, {_pair(text): _numbers(value, text) for text, value in selectivities.items()}, windows
    )


def graph_of_text(
    condition: str,
    rates: Iterable[str] = (),
    windows: Iterable[str] = (),
    selectivities: Iterable[str] = (),
    equalities: Equalities | str = Equalities.CLOSED,
) -> JoinGraph:
    """The join graph of a condition, with numbers given as `name=number`; usual numbers for the rest.

    >>> graph = graph_of_text("A.k = B.k AND B.k = C.k", rates=["A=9"], selectivities=["A.k = B.k = 0.02"])
    >>> graph.rates.tolist(), graph.predicates[0].selectivity
    ([9.0, 1.0, 1.0], 0.02)
    """
    usual = JoinGraph.from_text(condition, equalities=equalities)
    given = {"rate": _named(rates, "rate", "R1=75"), "window": _named(windows, "window", "R1=60")}
    for name in (name for each in given.values() for name in each):
        usual.position(name)
    shares = dict.fromkeys(map(str, parse_condition(condition)), DEFAULT_SELECTIVITY)
    for text, value in _named(selectivities, "selectivity", "R1.pid = R2.pid = 0.02").items():
        shares[" AND ".join(map(str, parse_condition(text)))] = value
    rate_of, window_of = ({name: numbers.get(name, 1.0) for name in usual.names} for numbers in given.values())
    return JoinGraph.from_text(condition, rate_of, shares, window_of, equalities)


def _named(texts: Iterable[str], quantity: str, example: str) -> dict[str, float]:
    """Numbers by the text before the last equals sign."""
    found = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            found[name.strip()] = float(number)
        except ValueError:
            raise ValueError(f"{text!r} is no {quantity}; write it like {example!r}") from None
    return found


def _pair(text: str) -> tuple[str, str]:
    names = text.split()
    if len(names) != 2:  # noqa: PLR2004 - a predicate joins two streams
        raise ValueError(
            f'{text!r} names no pair of streams; write all selectivities like "R1.pid = R2.pid", or all like "R1 R2"'
        )
    return names[0], names[1]


def _numbers(value: Any, text: str) -> list[float]:  # noqa: ANN401 - a file's content
    if value == []:
        raise ValueError(f"{text!r} has no selectivity; write a number, or a list of a number for each predicate")
    return [
        _number(number, f"the selectivity of {text!r}") for number in (value if isinstance(value, list) else [value])
    ]


def _number(value: Any, quantity: str) -> float:  # noqa: ANN401 - a file's content
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{quantity} is a number, not {value!r:.80}")  # noqa: TRY004 - a file's content
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{quantity} is too large a number: {str(value)[:20]}...") from None
