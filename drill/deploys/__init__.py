"""The next version of the shop's workflow, as a deploy would bring it. See `workflow`."""
