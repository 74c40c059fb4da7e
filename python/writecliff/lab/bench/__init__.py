"""Benchmarks of writecliff itself."""
