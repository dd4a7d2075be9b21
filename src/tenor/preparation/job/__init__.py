"""The map-reduce job of `tenor prepare`: one module per stage, and the folders and accounting they share."""
