"""Figures over time: roll-ups, histograms, and a replay of recorded attempts.

Not here: charts (`charts`) and the counts of pages (`queries`).
"""
