"""By what people follow a task from process to process: the ids of its trace, its spans, its log lines.

Not here: what is worth a span. Who does the work calls `spans`, and only if `switch.ON`.
"""
