"""Engines: what runs a workload on a drive, simulated or real. The seam is `base`."""
