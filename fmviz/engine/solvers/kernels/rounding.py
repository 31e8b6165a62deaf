"""Thresholds that tell numbers from rounding errors, and large numbers from infinity."""

# The square of a relative rounding error, with room for sums of many.
NOISE = 1e-28
# The strength of the row operator where the smooth part is flat: larger than any entry, yet 0 times it is 0.
BEYOND = 1e300
