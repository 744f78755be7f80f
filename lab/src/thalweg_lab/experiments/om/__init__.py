"""The experiments of om-plan-charts-2005."""
