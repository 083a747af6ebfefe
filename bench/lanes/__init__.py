"""The parts that measurements under failure share: lanes, a failing remote service, and a client.

A lane is an agent with a queue, a worker and a workflow of one step, all of the same name. A run is one
load on one lane; its name is part of the service's path, and its tasks are numbered.
"""
