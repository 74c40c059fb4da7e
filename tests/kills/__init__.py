"""Commands that are killed at random moments or run out of space, and are then resumed.

For each kind of command, `python -m tests.kills --count 200 --seed 7` prints how many trials ended
like the undisturbed run. Each trial is reproducible: kind, seed and number determine the moment of
the disturbance, as a fraction of the undisturbed run's CPU time.
"""
