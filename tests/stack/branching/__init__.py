"""An application whose workflow branches: two carriers, the second for addresses that the first refuses."""
