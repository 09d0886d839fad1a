"""Training of the small models, after the paper's appendix "Experimental setup"."""
