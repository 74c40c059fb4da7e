"""Choose a drive: run a load on many simulated drives, apply limits and weights, and rank them.

question.py    load, limits, weights and prices of a choice; stored as choice.json
candidates.py  drives that are compared
plan.py        runs of each candidate
measured.py    figures of a drive, from its runs
load_kinds.py  kinds of a load, by which model errors are grouped
certainty.py   errors of drive models on held-out figures
ranking.py     ranking, with the reasons why drives lose
variants.py    changes that might alter the ranking
answer.py      complete answer to a choice
page.py        report page of a choice
"""
