"""`tenor train --profile`: what every worker does when, as a trace for Perfetto and a table of where a step goes."""
