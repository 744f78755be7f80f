"""The demonstration: three acts on local Spark, in each of which Thalweg and plain Spark read the same drifting stream.

`in_turns` feeds the contenders, `tell` shows their progress, `story` puts the acts together; `screening`, `traffic` and
`standing` are the acts. Everything runs through the public entry points, and every number is measured in the run.
"""
