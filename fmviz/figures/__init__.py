"""Plotly figures: arrays and frames in, `go.Figure` out."""
