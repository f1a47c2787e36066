"""Measurements, as ratios within one run: `python -m eval.bench`."""
