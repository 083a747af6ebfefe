"""What a few requests that can never be done cost the others at the same agent."""
