"""What steps are sent: templates, keys and limits, as data. No workflow is needed to read them."""
