"""Typed settings of a page, kept in its session and address; presets, and locks of a teacher's link."""
