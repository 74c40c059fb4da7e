"""Research and development: checks of the simulator, and their results (`writecliff lab`).

`validate` compares simulated drives with theory, `published` with published figures. `experiments`
repeats published experiments. `reliability` runs drives with and without a feature, and `torture`
cuts their power. `bench` measures the speed of writecliff. `commands` is the command line. The
product does not import this package (`pyproject.toml`), and its commands do not load it.
"""
