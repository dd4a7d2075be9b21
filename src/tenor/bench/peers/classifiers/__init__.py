"""Other classifiers of reviews: fastText, NBSVM, TF-IDF with logistic regression, and the majority class."""
