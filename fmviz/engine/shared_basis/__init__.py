"""Components of solvers for a shared basis (blondel2017): gradients, selection, refits and bounds."""
