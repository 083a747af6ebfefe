"""The pure core under simulated services, messages, clocks, crashes and operators, by seeds."""
