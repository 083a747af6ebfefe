"""The partners: one agent per remote service, their HTTP, ledgers, error codes and schemas."""
