"""What a score on one set of items says about another: models of right answers per item."""
