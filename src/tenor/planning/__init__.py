"""Predicts time, money and accuracy of training on any number and mix of machines, from measurements of a few."""
