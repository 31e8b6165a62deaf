"""Checkpoints, from which a run resumes in another process with identical iterates."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from .arrays import UNREADABLE, Arrays
from .memory import aligned_copy
from .parameters import Parameters
from .snapshot import Snapshot, Status

Keep = Callable[[Callable[[], "Checkpoint"]], None]
"""A function called with a factory of the checkpoint, which is copied only when needed."""

_TREE = "tree"
_OUTPUTS, _END = "machines", "end"
_PARAMETERS, _GENERATORS = "parameters at rest", "generators"


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The state of a run between two epochs.

    Attributes
    ----------
    epoch : int
        The number of completed epochs.
    seconds : float
        Solver seconds spent, as in `fmviz.engine.snapshot.Snapshot`.
    change : float
        The change in the last epoch.
    memory : mapping
        The state of the solver: arrays, numbers, strings, None, states of random generators, and tuples and
        mappings of these. Read-only. Several outputs have a tuple of checkpoints, as mappings.
    """

    epoch: int
    seconds: float
    change: float
    memory: Mapping[str, Any]

    @classmethod
    def of(
        cls, solver: Any, epoch: int = 0, seconds: float = 0.0, change: float = float("nan")
    ) -> Checkpoint:
        """Return the state of a solver."""
        return cls(epoch, seconds, change, remember(solver))

    @classmethod
    def of_end(cls, last: Any) -> Checkpoint:
        """Return the state of an output whose run has ended with this snapshot."""
        status = last.status.reason.value, last.status.message
        end = {"record": last.record(), "parameters": last.parameters, "status": status}
        return cls(last.epoch, last.seconds, last.change, {_END: end})

    @classmethod
    def at_rest(
        cls, parameters: Parameters, rng: np.random.Generator, epoch: int, seconds: float
    ) -> Checkpoint:
        """Return parameters from which a run continues with other strengths."""
        memory = {_PARAMETERS: dict(parameters), _GENERATORS: (rng.bit_generator.state,)}
        return cls(epoch, seconds, float("nan"), memory)

    @property
    def ended(self) -> bool:
        """Whether the run of this output has ended."""
        return _END in self.memory

    @property
    def rests(self) -> bool:
        """Whether a solver starts anew from `parameters`."""
        return _PARAMETERS in self.memory

    def end(self) -> Snapshot:
        """Return the last snapshot of an output that has ended."""
        record, arrays, status = (self.memory[_END][name] for name in ("record", "parameters", "status"))
        return Snapshot.of_record(record, Parameters(**arrays), Status.of(*status))

    def parameters(self, rng: np.random.Generator) -> Parameters:
        """Return the parameters of a checkpoint at rest, and set the state of the generator."""
        for state in self.memory.get(_GENERATORS, ()):
            rng.bit_generator.state = state
        return Parameters(**self.memory[_PARAMETERS])

    @classmethod
    def joined(cls, each: Sequence[Checkpoint], several: bool) -> Checkpoint:
        """Join the checkpoints of all outputs, unless there are not `several`."""
        if not several:
            return each[0]
        if each[0].rests:
            parameters = Parameters.stacked([Parameters(**part.memory[_PARAMETERS]) for part in each])
            states = tuple(state for part in each for state in part.memory[_GENERATORS])
            memory = {_PARAMETERS: dict(parameters), _GENERATORS: states}
            epochs, seconds = max(part.epoch for part in each), sum(part.seconds for part in each)
            return cls(epochs, seconds, float("nan"), memory)
        running = next(part for part in each if not part.ended)
        return replace(running, memory={_OUTPUTS: tuple(vars(part) for part in each)})

    def split(self, m: int | None) -> list[Checkpoint]:
        """Return the checkpoints of m outputs; None for a single one."""
        if m is None:
            return [self]
        if not self.rests:
            return [_of_output(state) for state in self.memory[_OUTPUTS]]
        parameters, states = Parameters(**self.memory[_PARAMETERS]), self.memory.get(_GENERATORS, ())
        return [
            replace(
                self,
                seconds=self.seconds / m,
                memory={_PARAMETERS: dict(parameters.of_output(c)), _GENERATORS: states[c : c + 1]},
            )
            for c in range(m)
        ]

    def for_other_rows(self, solver: Any, m: int | None) -> Checkpoint | None:
        """Return the part that stays valid when the rows change, None if there is none."""
        each = [replace(part, memory=solver.for_other_rows(part.memory)) for part in self.split(m)]
        return Checkpoint.joined(each, m is not None) if any(part.memory for part in each) else None

    def to_bytes(self) -> bytes:
        """Return the checkpoint as a compressed archive of arrays, without code."""
        arrays: list[np.ndarray] = []
        head = {"epoch": self.epoch, "seconds": self.seconds, "change": self.change}
        tree = {**head, "memory": _to_tree(dict(self.memory), arrays)}
        buffer = io.BytesIO()
        np.savez_compressed(
            buffer,
            allow_pickle=False,
            **{_TREE: np.array(json.dumps(tree))},
            **{str(i): array for i, array in enumerate(arrays)},
        )
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> Checkpoint:
        """Read a checkpoint written by `to_bytes`.

        Raises
        ------
        ValueError
            If `data` is not such an archive.
        """
        try:
            archive = Arrays(data)
            tree = json.loads(str(archive[_TREE]))
            memory = _from_tree(tree["memory"], archive)
            return cls(int(tree["epoch"]), float(tree["seconds"]), float(tree["change"]), memory)
        except UNREADABLE as error:
            raise ValueError(
                "This is not a checkpoint of a run, or it is damaged. Restart the run from its settings."
            ) from error


def _of_output(state: Mapping[str, Any]) -> Checkpoint:
    # Before version 0.1, outputs that had ended had only their end.
    end = state.get(_END)
    values = state if end is None else {**end["record"], "memory": {_END: end}}
    return Checkpoint(*(values[name] for name in ("epoch", "seconds", "change", "memory")))


def remember(owner: Any) -> dict[str, Any]:
    """Copy the attributes listed in an object's `memory`, except unset ones."""
    return {name: _copied(getattr(owner, name)) for name in owner.memory if hasattr(owner, name)}


def recall(owner: Any, memory: Mapping[str, Any]) -> None:
    """Set the attributes of a started object to those copied by `remember` from an object of its class.

    Raises
    ------
    ValueError
        If the memory comes from another class.
    """
    unknown = sorted(set(memory) - set(owner.memory))
    if unknown:
        raise ValueError(
            f"The checkpoint has {', '.join(unknown)}, which {type(owner).__name__} does not store: it "
            "comes from another solver or version. Restart the run from its settings."
        )
    for name, value in memory.items():
        setattr(owner, name, _restored(getattr(owner, name, None), value))


def _copied(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy(order="K")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.random.Generator):
        return dict(value.bit_generator.state)
    if isinstance(value, tuple):
        return tuple(_copied(item) for item in value)
    if isinstance(value, Parameters):
        return {name: array.copy(order="K") for name, array in value.items()}
    if is_dataclass(value):
        return {field.name: _copied(getattr(value, field.name)) for field in fields(value)}
    if hasattr(value, "memory"):
        return remember(value)
    raise TypeError(f"A {type(value).__name__} cannot be stored in a checkpoint.")


def _restored(present: Any, value: Any) -> Any:
    """Return `value`, copied by `_copied`, in the type and layout of `present`."""
    if isinstance(value, np.ndarray):
        # Loops round identically only with equal memory alignment.
        if value.dtype != np.float64:
            return value.copy(order="K")
        if value.flags.c_contiguous:
            return aligned_copy(value)
        return aligned_copy(value.T).T if value.flags.f_contiguous else value.copy(order="K")
    if isinstance(value, tuple):
        known = present if isinstance(present, tuple) and len(present) == len(value) else (None,) * len(value)
        return tuple(_restored(*pair) for pair in zip(known, value, strict=True))
    if not isinstance(value, Mapping):
        return value
    if isinstance(present, np.random.Generator):
        present.bit_generator.state = value
        return present
    if isinstance(present, Parameters):
        return Parameters(**{name: _restored(None, item) for name, item in value.items()})
    if is_dataclass(present) and not isinstance(present, type):
        kind: Any = type(present)
        return kind(**{name: _restored(getattr(present, name), item) for name, item in value.items()})
    recall(present, value)
    return present


def _to_tree(value: Any, arrays: list[np.ndarray]) -> Any:
    """Return JSON with arrays replaced by their index in `arrays`."""
    if isinstance(value, np.ndarray):
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if isinstance(value, tuple):
        return {"tuple": [_to_tree(item, arrays) for item in value]}
    if isinstance(value, Mapping):
        return {"mapping": {name: _to_tree(item, arrays) for name, item in value.items()}}
    return value


def _from_tree(tree: Any, archive: Mapping[str, np.ndarray]) -> Any:
    if not isinstance(tree, dict):
        return tree
    ((kind, inside),) = tree.items()
    if kind == "array":
        return archive[str(inside)]
    if kind == "tuple":
        return tuple(_from_tree(item, archive) for item in inside)
    return {name: _from_tree(item, archive) for name, item in inside.items()}
