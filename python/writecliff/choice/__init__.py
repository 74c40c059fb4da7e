"""Drive selection: run a load on many simulated drives, apply limits and weights, and rank.

question.py    load, limits, weights and prices of a choice; stored as choice.json
candidates.py  drives to compare
plan.py        runs of each candidate
measured.py    figures of a drive, from its runs
load_kinds.py  load kinds, which group the model errors
certainty.py   errors of drive models on held-out figures
ranking.py     ranking, with the reasons for each drive's rank
variants.py    changes that might alter the ranking
answer.py      complete answer to a choice
page.py        report page of a choice
"""
