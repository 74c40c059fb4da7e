"""Published figures of real drives, and simulated drives measured under the same conditions.

`figures.csv` contains the published figures. `conditions.py` determines a figure's conditions,
`measure.py` measures simulated drives under these conditions, `scores.py` compares the results, and
`fit` estimates drive parameters from figures. `held_out.py` contains the errors of held-out
figures. No figure is adjusted after a simulation. `writecliff.lab.published` compares all published
figures.
"""
