"""The lab of Thalweg: the papers' experiments, the benchmarks and the demonstration.

A distribution of its own, `thalweg-lab`, so that users of `thalweg` do not install it. Its commands are found by the
command `thalweg` through the entry points of `thalweg.commands`.
"""

__version__ = "0.1.0"
