"""Machines of several outputs on one shared basis (blondel2017): gradients, selection, refits and bounds."""
