"""A whole system on one machine: embedded servers, and a process manager over every process."""
