"""Engines that run workloads on a simulated or real drive.

The engine interface is defined in `base`.
"""
