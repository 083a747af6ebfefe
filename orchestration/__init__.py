"""The engine: the Scheduler Agent Supervisor pattern, for any workflow. Import `orchestration.api`."""
