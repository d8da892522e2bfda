"""Writes `envelope.onnx`, whose nodes are of operators of a domain of its own. Run with onnx 1.17 or newer."""

from pathlib import Path

import onnx
from onnx import TensorProto, helper

SHAPE = ["channels", "samples"]

nodes = [
    helper.make_node(
        "Envelope", ["sound"], ["level"], "level", domain="org.example.sound", attack=0.02, release=0.002
    ),
    helper.make_node("Mul", ["sound", "level"], ["loud"], "loud"),
    helper.make_node("SoftClip", ["loud"], ["clipped"], "clip", domain="org.example.sound", drive=1.5),
]
graph = helper.make_graph(
    nodes,
    "envelope",
    [helper.make_tensor_value_info("sound", TensorProto.FLOAT, SHAPE)],
    [helper.make_tensor_value_info("clipped", TensorProto.FLOAT, SHAPE)],
    value_info=[helper.make_tensor_value_info("level", TensorProto.FLOAT, SHAPE)],
)
domains = [helper.make_opsetid("", 17), helper.make_opsetid("org.example.sound", 1)]
onnx.save(helper.make_model(graph, opset_imports=domains, ir_version=8), Path(__file__).parent / "envelope.onnx")
