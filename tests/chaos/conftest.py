"""Programs of their own, and clusters, for the chaos tests."""

from __future__ import annotations

from tests.spark.conftest import cluster, environment

__all__ = ["cluster", "environment"]  # fixtures
