"""The page Proximal operators."""
