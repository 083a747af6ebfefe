"""An app that removes a guard, named in a file, from processes that start: the drill must fail."""
