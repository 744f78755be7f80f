"""The experiments of q-aware-join-ordering-2009, one a file, named after the planner its figures are about."""
