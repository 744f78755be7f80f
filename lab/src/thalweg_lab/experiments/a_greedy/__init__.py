"""The experiments of a-greedy-2004, one a file, named after the figure or table it reproduces."""
