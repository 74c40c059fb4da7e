"""Comparison of simulated drives with SSD-iq's skewed, static and open-loop measurements.

Source: G. Haas, B. Lee, P. Bonnet, V. Leis, "SSD-iq: Uncovering the Hidden Side of SSD
Performance", PVLDB 18(11), 2025, and the data of its public artifact
(https://github.com/gabriel-haas/ssdiq-pub, commit 8a0a3f4, folder `paper`). `figures.csv` contains
measured figures, each with its condition in words; `run` is the artifact's folder. All runs of a
kind share the values that their conditions omit (`conditions`). `sheets.csv` contains the drives'
data sheets. Rules derive a drive from its sheet (`drives`) and a load from its condition, so tables
for other drives and loads also work.
"""
