"""Benchmarks of the program itself."""
