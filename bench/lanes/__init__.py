"""What measurements under failure share: agents by lane, a remote service that fails, and a client.

A lane is one agent with a queue, a worker and a workflow of one step, all of the lane's name. A run
is one load on one lane; the service knows it by the path, and its tasks have numbers.
"""
