"""What customers say: phrases, groups, label errors and near-duplicates of many reviews; and drift."""
