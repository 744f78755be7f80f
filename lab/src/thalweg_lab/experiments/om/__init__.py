"""Experiments of om-plan-charts-2005."""
