"""Small open models, measured by this project on its own machine."""
