"""Short training rows that show what negation does to the words with the strongest opinion."""
