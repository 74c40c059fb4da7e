"""Comparison of simulated drives with SSD-iq: loads, results and their page."""
