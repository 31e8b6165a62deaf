"""Settings of a page: their values, types and presets, and what a teacher's link hides of them."""
