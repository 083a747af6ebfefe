"""The housekeeper: periodic work that no step waits for (P3).

Here: the list of its duties, and those whose subject has no room that may know of duties.
Not here: recovery of steps (`supervisor`), and other duties, which stand with their subjects.
"""
