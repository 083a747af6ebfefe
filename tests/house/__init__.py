"""The layout in numbers: rooms, layers, circles of imports, lines and duplicates.

Here belongs what measures the source as text or as a graph of imports. What runs the product, or
checks its behaviour, belongs beside the tests of the module in question.
"""
