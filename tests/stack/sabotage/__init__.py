"""Takes a guard away from processes that start while a file says so: the drill must see it."""
