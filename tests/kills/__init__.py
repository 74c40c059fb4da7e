"""Commands that are killed at random moments or run out of space, and are then resumed.

`python -m tests.kills --count 200 --seed 7` prints for each kind of command how many trials ended
like the undisturbed run. A trial is reproducible: kind, seed and number determine the moment of
the disturbance, as a share of the CPU time of the undisturbed run.
"""
