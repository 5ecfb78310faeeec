"""What an experiment can ask: one file a kind. It says what one item measures, and how its rows are told."""
