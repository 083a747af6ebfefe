"""An application of the workflows of docs/use/recipes.md, whose partners are part of the test."""
