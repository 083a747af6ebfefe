"""Messages between processes, and the queues on Redis that carry them.

Here: the shapes of messages, inboxes, doorbells, and queue depths.
Not here: how a message is handled; durable messages are rows (`models.inbox`).
"""
