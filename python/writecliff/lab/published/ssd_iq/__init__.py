"""Comparison of simulated drives with SSD-iq: loads, results and page."""
