"""What a project has set for its own release tools: types and steps, 0.x, tags. Facts of the base commit."""
