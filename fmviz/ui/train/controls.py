"""The buttons of a run: play, pause, step, stop, reset, reseed; its speed, and the size of a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from fmviz.engine.settings import ParamSpec
from fmviz.lab.background.job import Job
from fmviz.lab.background.task import TaskState
from fmviz.ui import widgets
from fmviz.ui.settings.state import Settings
from fmviz.ui.train import epoch_trace

SPEEDS = {"slow": ("Slow", 3.0), "watch": ("Normal", 30.0), "full": ("Full speed", 0.0)}
"""Words and epochs a second, 0 without a limit."""
VIEW = (
    ParamSpec(
        "speed",
        "choice",
        "watch",
        choices=tuple(SPEEDS),
        help="Slow makes 3 epochs a second, or 2 to 3 of the steps chosen beside it; Normal at most 30 "
        "epochs, Full speed as many as it can. The results are the same; you can change it during a run.",
    ),
    *epoch_trace.VIEW,
)
PARTS = ("play", "pause", "step", "stop", "reset", "reseed")


def draw_controls(
    settings: Settings,
    job: Job | None,
    stale: bool,
    possible: bool,
    start: Callable[..., None],
    *,
    others: bool = False,
) -> None:
    """Draw the controls.

    Parameters
    ----------
    settings : Settings
        The page's, with `VIEW`.
    job : Job or None
        The run that is shown.
    stale : bool
        Whether the settings have changed since.
    possible : bool
        Whether a run with the settings can be made.
    start : callable
        ``start(settings, steps, **changes)`` starts a run, see the training page.
    others : bool
        Whether the run goes on for somebody else, and is not to be halted from here.
    """
    state = job.state if job is not None else None
    moving = settings["motion"]
    active = moving or (state is not None and state.active)
    paused = state is TaskState.PAUSED and not moving
    ended = state is not None and state.ended

    def play() -> None:
        slow = settings["speed"] == "slow" and settings["grain"] != "epoch"
        if job is None or not paused or stale:
            settings.set(motion=False, inside=0)
            start(settings, *((0,) if slow else ()))
            if slow:
                epoch_trace.begin_motion(settings)
        elif slow and epoch_trace.possible(settings, job):
            epoch_trace.begin_motion(settings)
        else:
            settings.set(inside=0)
            job.play()

    def pause() -> None:
        epoch_trace.end_motion(settings)
        if job is not None:
            job.pause()

    def stop() -> None:
        settings.set(motion=False, inside=0)
        if job is not None:
            job.stop()

    def step() -> None:
        if job is not None and paused and not stale:
            epoch_trace.step(settings, job)
        else:
            fine = settings["grain"] != "epoch"
            start(settings, 0 if fine else 1)
            settings.set(inside=int(fine))

    def restart(**changes: Any) -> None:
        settings.set(motion=False, inside=0)
        start(settings, 0, **changes)

    def reseed() -> None:
        high = int(settings.spec("seed").high or 0)
        restart(seed=(settings["seed"] + 1) % (high + 1))

    def set_speed() -> None:
        if job is not None and not others:
            job.set_pace(SPEEDS[settings["speed"]][1])
            if settings["motion"] and settings["speed"] != "slow":
                settings.set(motion=False, inside=0)
                job.play()

    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="train_controls"):
        widgets.action(
            settings,
            "play",
            "Play",
            icon=":material/play_arrow:",
            type="primary",
            shortcut="P",
            disabled=not possible or ((active or others) and not stale),
            on_click=play,
            help="Go on, or start with the present settings.",
        )
        widgets.action(
            settings,
            "pause",
            "Pause",
            icon=":material/pause:",
            shortcut="H",
            disabled=not active or others,
            on_click=pause,
            help="Halt after the present epoch.",
        )
        # One phrase: step by epoch.
        with st.container(
            horizontal=True, vertical_alignment="center", gap="xxsmall", width="content", key="train_stepping"
        ):
            widgets.action(
                settings,
                "step",
                "Step",
                icon=":material/skip_next:",
                shortcut="S",
                disabled=not possible or active or ((ended or others) and not stale),
                on_click=step,
                help="One epoch, or one of the steps chosen beside it.",
            )
            grains = epoch_trace.grain_names(job)
            widgets.control(
                settings,
                "grain",
                st.selectbox,
                "Step by",
                list(grains),
                format_func=lambda name: f"by {grains[name].lower()}",
                label_visibility="collapsed",
                width=140,
                then=lambda: settings.set(inside=0, motion=False),
            )
        widgets.action(
            settings,
            "stop",
            "Stop",
            icon=":material/stop:",
            shortcut="X",
            disabled=not (active or paused) or others,
            on_click=stop,
            help="End the run for good.",
        )
        widgets.action(
            settings,
            "reset",
            "Reset",
            icon=":material/restart_alt:",
            shortcut="0",
            disabled=not possible or job is None,
            on_click=restart,
            help="Back to epoch 0 with the present settings and the same seed.",
        )
        widgets.action(
            settings,
            "reseed",
            "Reseed",
            icon=":material/casino:",
            shortcut="N",
            disabled=not possible,
            on_click=reseed,
            help="The next seed: another start and another split. Back to epoch 0.",
        )
        widgets.control(
            settings,
            "speed",
            st.segmented_control,
            "Speed",
            list(SPEEDS),
            format_func=lambda name: SPEEDS[name][0],
            required=True,
            label_visibility="collapsed",
            then=set_speed,
        )
