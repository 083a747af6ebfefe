"""Charts as plain numbers for an SVG, drawn on the server."""
