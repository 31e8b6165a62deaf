"""Compiled proximal operators shared by several penalties."""
