"""Every page, looked at: in both themes, wide and narrow, with what opens open, for barriers too."""
