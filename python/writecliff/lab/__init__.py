"""Research and development: checks of the simulator, and figures behind it (`writecliff lab`).

`validate` compares simulated drives with theory, `published` with published figures; `experiments`
repeats published experiments, `reliability` and `torture` run drives with and without a feature and
cut their power, `bench` measures the speed of writecliff. `commands` is their command line. The
product does not import this package (`pyproject.toml`), and no command of it loads it.
"""
