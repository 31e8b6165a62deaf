"""The mathematics: operators, models, solvers and their certificates. It knows no screen."""
