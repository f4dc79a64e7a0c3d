"""A policy as an ONNX file, for programs that know nothing of cito.

    input   observation (batch, n), float32      output   action (batch, nj), float32, in [-1, 1]

    h_i = Elu(Gemm(h_(i-1), W_i, b_i)),   action = Tanh(Gemm(h_(n-1), W_n, b_n))

Joint targets are nominal + action_scale * action; these, the gains and the control step are in the
file's metadata, as JSON. What is written is checked: ONNX Runtime has to give the policy's actions.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from cito.dynamics.files import replacing
from cito.dynamics.types import Array
from cito.problems.locomotion import LocomotionTask
from cito.solvers.learning.policy import Policy

OPSET = 17
TOLERANCE = 1e-5  # of actions: weights are rounded to single precision
TESTED = 256  # observations that the file is checked with


def export(policy: Policy, file: str | Path, task: LocomotionTask | None = None) -> float:
    """Write `file`; the largest difference between its actions and the policy's.

    Args:
        policy: what is written.
        file: replaced whole or not at all.
        task: that it learned, for the metadata.

    Raises:
        ImportError: onnx or onnxruntime is not installed.
        ArithmeticError: the file's actions are not the policy's; nothing is written.
    """
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "ONNX files need onnx and onnxruntime: pip install '.[onnx]' in cito's folder"
        ) from error
    data = serialized(policy, {} if task is None else about(task))
    difference = disagreement(policy, data)
    if not difference <= TOLERANCE:
        raise ArithmeticError(
            f"the exported actions differ by {difference:.2g} from the policy's, more than "
            f"{TOLERANCE:g}: nothing was written"
        )
    with replacing(file) as temporary:
        temporary.write_bytes(data)
    return difference


def serialized(policy: Policy, metadata: dict[str, object]) -> bytes:
    """The bytes of the file."""
    from onnx import TensorProto, checker, helper, numpy_helper

    nodes, tensors, name = [], [], "observation"
    last = len(policy.weights) - 1
    for i, (W, b) in enumerate(zip(policy.weights, policy.biases)):
        tensors += [numpy_helper.from_array(W.astype(np.float32), f"W{i}")]
        tensors += [numpy_helper.from_array(b.astype(np.float32), f"b{i}")]
        nodes.append(helper.make_node("Gemm", [name, f"W{i}", f"b{i}"], [f"z{i}"]))
        name = "action" if i == last else f"h{i}"
        nodes.append(helper.make_node("Tanh" if i == last else "Elu", [f"z{i}"], [name]))
    ends = (("observation", policy.sizes[0]), ("action", policy.sizes[-1]))
    first, final = (
        helper.make_tensor_value_info(end, TensorProto.FLOAT, ["batch", size]) for end, size in ends
    )
    graph = helper.make_graph(nodes, "policy", [first], [final], tensors)
    opsets = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(graph, producer_name="cito", opset_imports=opsets, ir_version=8)
    if metadata:
        helper.set_model_props(model, {"cito": json.dumps(metadata)})
    checker.check_model(model, full_check=True)
    data: bytes = model.SerializeToString()
    return data


def disagreement(policy: Policy, data: bytes) -> float:
    """The largest difference between actions of ONNX Runtime and of the policy, over normal
    observations of deviations from 0.1 to 10."""
    import onnxruntime

    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    random = np.random.default_rng(0)
    o = np.geomspace(0.1, 10.0, TESTED)[:, None] * random.standard_normal((TESTED, policy.sizes[0]))
    o = o.astype(np.float32)
    (action,) = session.run(None, {"observation": o})
    return float(abs(action - policy(o.astype(float))).max())


def about(task: LocomotionTask) -> dict[str, object]:
    """What one has to know to use the actions."""

    def listed(values: Array) -> list[float]:
        return [float(value) for value in values]

    return {
        "task": task.name,
        "robot": task.robot.name,
        "joints": list(task.robot.joints),
        "nominal": listed(task.nominal),
        "action_scale": listed(task.action_scale),
        "kp": task.kp,
        "kd": task.kd,
        "control_step": task.control_step,
        "gait_period": task.gait.period if task.gait else None,
        "history": task.history,
    }
