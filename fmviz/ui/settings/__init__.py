"""Settings of a page: values, types, presets, and the restrictions of a teacher's link."""
