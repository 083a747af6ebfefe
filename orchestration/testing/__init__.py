"""The testing kit: workflows run in one process, and agents are checked against their services.

It belongs to tests: nothing else of the engine imports it, and it may import all of the engine. What a test
of the engine alone needs stands with the tests.
"""
