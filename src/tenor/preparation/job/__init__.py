"""The map-reduce job of `tenor prepare`: its stages, their order, the folders they share and the accounting of rows."""
