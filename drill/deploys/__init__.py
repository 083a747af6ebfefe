"""The next release of the shop's workflow, for drills of deploys; see `workflow`."""
