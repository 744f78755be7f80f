"""Benchmarks of adaptivity in counts: evaluations of the pipeline of `tw.where` beside a clairvoyant's."""
