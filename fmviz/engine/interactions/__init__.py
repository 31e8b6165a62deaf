"""Interaction weights of models of any order: rank, slice, count and convert them."""
