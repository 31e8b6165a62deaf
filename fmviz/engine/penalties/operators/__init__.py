"""Proximal operators that several penalties share, compiled."""
