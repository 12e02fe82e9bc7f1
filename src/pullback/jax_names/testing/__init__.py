"""What JAX's tests, and those of libraries that use its helpers, are written with: see `jax_names/src/test_util.py`.

`data` makes random arrays and knows tolerances, `machine` says what tests run on, `settings` sets options for a while,
`counts` counts traces and compilations, `cases` has the classes of tests (and needs absl).
"""
