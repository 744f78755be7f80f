"""The state of a class router as bytes: a JSON text, an Arrow table of the sample, and the profile of each policy.

Everything is checked before a router is made of it. Content that Thalweg does not write is a `SavedStateError`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from thalweg.ordering.precedence import MAX_FILTERS
from thalweg.ordering.profile import NEVER, Profile
from thalweg.ordering.types import Integers
from thalweg.routing.attributes import MOST_NAMES
from thalweg.routing.classifier import Cells, Classifier, Estimate
from thalweg.routing.classifier_sample import ClassifierSample
from thalweg.routing.schedule import FIRST_LOOK
from thalweg.sealed import SavedStateError, dump_table, load_fields, load_table, odd, seal, unseal

KIND, VERSION = "routing state", 4
MOST_WINDOW = 1 << 18  # profile tuples of a saved sample: half a gigabyte with the most attributes
FIELDS = {
    "attributes": list,
    "filters": int,
    "window": int,
    "most_classes": int,
    "pairs": bool,
    "seen": int,
    "due": int,
    "rest": int,
    "tuples": int,
    "dropped": int,
    "price": float,
    "widths": list,
    "orders": list,
    "cells": object,
    "keys": list,
    "classes": list,
    "estimates": list,
    "pruned": dict,
    "events": list,
}
EVENT_FIELDS = {"profile_tuples": int, "what": str, "attributes": list, "why": str}


@dataclass(frozen=True)
class SavedRouter:
    """The state of a class router, apart from the policies and the detector, which the query gives."""

    attributes: tuple[str, ...]
    filters: int
    window: int
    most_classes: int
    pairs: bool
    seen: int  # profile tuples
    due: int
    rest: int
    tuples: int
    dropped: int
    price: float
    widths: tuple[float, ...]
    orders: tuple[tuple[int, ...], ...]  # by class, the overall order first
    classifier: Classifier | None
    estimates: tuple[Estimate, ...]
    pruned: dict[str, str]
    events: tuple[dict[str, Any], ...]
    sample: ClassifierSample
    profiles: tuple[Profile, ...]  # of the policies, by class

    def to_bytes(self) -> bytes:
        """The bytes that `from_bytes` reads."""
        classifier = self.classifier
        about = {
            **{name: getattr(self, name) for name in FIELDS if name not in {"cells", "keys", "classes", "estimates"}},
            "cells": None if classifier is None else asdict(classifier.cells),
            "keys": [] if classifier is None else classifier.keys.tolist(),
            "classes": [] if classifier is None else classifier.classes.tolist(),
            "estimates": [asdict(estimate) | {"savings": None} for estimate in self.estimates],
        }
        lists = {
            "codes": pa.FixedSizeListArray.from_arrays(self.sample.codes.ravel(), len(self.attributes)),
            "numbers": pa.FixedSizeListArray.from_arrays(self.sample.numbers.ravel(), len(self.attributes)),
        }
        table = pa.table({"mask": self.sample.masks, **lists}, schema=_schema(len(self.attributes)))
        profiles = (profile.to_bytes() for profile in self.profiles)
        return seal(KIND, VERSION, json.dumps(about).encode(), dump_table(table), *profiles)

    @classmethod
    def from_bytes(cls, data: bytes) -> SavedRouter:
        """The state that `to_bytes` wrote, or a `SavedStateError`."""
        parts = unseal(KIND, VERSION, data)
        if len(parts) < 3:  # noqa: PLR2004 - there is always an overall policy
            raise odd(KIND, f"{len(parts)} parts")
        fields = load_fields(KIND, parts[0], FIELDS)
        try:
            return cls._checked(fields, parts[1], parts[2:])
        except SavedStateError:
            raise
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise odd(KIND, f"{type(error).__name__}: {error}") from None

    @classmethod
    def _checked(cls, fields: Mapping[str, Any], table: bytes, profiles: Sequence[bytes]) -> SavedRouter:
        attributes = tuple(_texts(fields["attributes"]))
        filters, window = fields["filters"], fields["window"]
        _require(1 <= len(attributes) <= MOST_NAMES, "the attributes")
        _require(1 <= filters <= MAX_FILTERS, "the filters")
        _require(2 * FIRST_LOOK <= window <= MOST_WINDOW, "the window")
        _require(2 <= fields["most_classes"] < NEVER, "the number of classes")  # noqa: PLR2004 - as ClassRouter's
        counts = [fields[name] for name in ("seen", "due", "rest", "tuples", "dropped")]
        _require(all(0 <= count < NEVER for count in counts), "a count")
        _require(0 <= fields["price"] < math.inf, "the price")
        widths = tuple(_number(width) for width in fields["widths"])
        _require(len(widths) == len(attributes), "the widths")
        orders = tuple(tuple(order) for order in fields["orders"])
        _require(all(sorted(order) == list(range(filters)) for order in orders), "an order")
        known = tuple(Profile.from_bytes(profile) for profile in profiles)
        _require(len(known) == len(orders) and all(each.filters == filters for each in known), "the profiles")
        _require(all(isinstance(text, str) for text in fields["pruned"].values()), "the pruned attributes")
        for event in fields["events"]:
            load_fields(KIND, json.dumps(event), EVENT_FIELDS)
        return cls(
            **{name: fields[name] for name in ("filters", "window", "most_classes", "pairs", "seen", "due", "rest")},
            **{name: fields[name] for name in ("tuples", "dropped", "price", "pruned")},
            attributes=attributes,
            widths=widths,
            orders=orders,
            classifier=_classifier(fields, orders, len(attributes)),
            estimates=tuple(_estimate(estimate, len(attributes)) for estimate in fields["estimates"]),
            events=tuple(fields["events"]),
            sample=_sample(table, filters, len(attributes), window),
            profiles=known,
        )


def _schema(attributes: int) -> pa.Schema:
    """The columns of a saved sample."""
    return pa.schema(
        {
            "mask": pa.int64(),
            "codes": pa.list_(pa.int64(), attributes),
            "numbers": pa.list_(pa.float64(), attributes),
        }
    )


def _sample(data: bytes, filters: int, attributes: int, window: int) -> ClassifierSample:
    table = load_table(KIND, data, _schema(attributes))
    masks, codes, numbers = (
        np.array(column.to_numpy(zero_copy_only=False))
        for column in (
            table["mask"].combine_chunks(),
            table["codes"].combine_chunks().flatten(),
            table["numbers"].combine_chunks().flatten(),
        )
    )
    _require(masks.size <= window and not (masks >> filters).any(), "the sample")
    sample = ClassifierSample(attributes, window)
    if masks.size:
        sample.insert(masks, codes.astype(np.int64).reshape(-1, attributes), numbers.reshape(-1, attributes))
    return sample


def _classifier(fields: Mapping[str, Any], orders: tuple[tuple[int, ...], ...], attributes: int) -> Classifier | None:
    if fields["cells"] is None:
        _require(len(orders) == 1, "orders of classes without a classifier")
        return None
    keys, classes = _whole(fields["keys"]), _whole(fields["classes"])
    is_sorted = bool((keys[1:] > keys[:-1]).all())  # a difference might overflow
    _require(keys.shape == classes.shape and is_sorted, "the cells of the classifier")
    _require(bool(((classes > 0) & (classes < len(orders))).all()), "the classes of the classifier")
    return Classifier(_cells(fields["cells"], attributes), keys, classes, orders)


def _cells(saved: Mapping[str, Any], attributes: int) -> Cells:
    places = tuple(saved["attributes"])
    edges = tuple(None if each is None else tuple(_number(edge) for edge in each) for each in saved["edges"])
    _require(1 <= len(places) <= 2 and len(edges) == len(places), "the attributes of a candidate")  # noqa: PLR2004
    _require(all(type(place) is int and 0 <= place < attributes for place in places), "an attribute's number")
    _require(all(each is None or list(each) == sorted(each) for each in edges), "the edges of ranges")
    return Cells(places, edges)


def _estimate(saved: Mapping[str, Any], attributes: int) -> Estimate:
    numbers = {name: _number(saved[name]) for name in ("saving", "error", "cost", "gain_ratio")}
    _require(type(saved["classes"]) is int, "a number of classes")
    return Estimate(**numbers, cells=_cells(saved["cells"], attributes), classes=saved["classes"], savings=np.zeros(0))


def _whole(numbers: Sequence[Any]) -> Integers:
    _require(all(type(number) is int for number in numbers), "a whole number")
    return np.array(numbers, np.int64)


def _number(value: Any) -> float:  # noqa: ANN401 - what JSON says
    _require(type(value) in {int, float} and math.isfinite(value), "a number")
    return float(value)


def _texts(values: Sequence[Any]) -> Sequence[str]:
    _require(all(isinstance(value, str) for value in values), "a name")
    return values


def _require(holds: bool, what: str) -> None:  # noqa: FBT001 - a condition reads best by position
    if not holds:
        raise odd(KIND, f"{what} is not possible")
