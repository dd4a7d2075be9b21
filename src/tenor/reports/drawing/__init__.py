"""What every plot shares: colours and style, inline SVG, and the files that a page offers for download."""
