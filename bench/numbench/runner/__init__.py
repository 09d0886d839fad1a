"""Running models on datasets: specifications, plans, costs, workers, batch jobs and progress."""
