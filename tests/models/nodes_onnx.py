"""Writes `nodes/*.onnx`: small models with a part of everything, which tests change at random. Run with onnx 1.17 or newer."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT, BOOL, BYTE = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.UINT8
FOLDER = Path(__file__).parent / "nodes"
FOLDER.mkdir(exist_ok=True)
draw = np.random.default_rng(0)


def value(name, dtype, shape):
    return helper.make_tensor_value_info(name, dtype, shape)


def floats(*shape):
    return draw.uniform(-1, 1, shape).astype("float32")


def ints(*values):
    return np.array(values, dtype="int64")


def graph(name, nodes, inputs, outputs, **weights):
    tensors = [numpy_helper.from_array(np.asarray(array), key) for key, array in weights.items()]
    return helper.make_graph(nodes, name, inputs, outputs, tensors)


def save(name, nodes, inputs, outputs, version=19, **weights):
    domains = [helper.make_opsetid("", version), helper.make_opsetid("ai.onnx.ml", 3)]
    domains.append(helper.make_opsetid("com.microsoft", 1))
    model = helper.make_model(graph(name, nodes, inputs, outputs, **weights), opset_imports=domains, ir_version=9)
    onnx.save(model, FOLDER / f"{name}.onnx")


node = helper.make_node
x, y = [value("x", FLOAT, ["n", 4])], [value("y", FLOAT, None)]
image = [value("x", FLOAT, ["n", 2, 6, 6])]

save(
    "convolution",
    [
        node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2], group=1),
        node("BatchNormalization", ["c", "s", "b", "b", "s"], ["n"], epsilon=1e-3),
        node("MaxPool", ["n"], ["p"], kernel_shape=[2, 2], auto_pad="SAME_UPPER"),
        node("ConvTranspose", ["p", "t"], ["u"], output_padding=[1, 1], strides=[2, 2]),
        node("Resize", ["u", "", "factors"], ["y"], mode="cubic"),
    ],
    image,
    y,
    w=floats(3, 2, 3, 3),
    b=floats(3),
    s=np.ones(3, "float32"),
    t=floats(3, 2, 2, 2),
    factors=np.array([1, 1, 2, 1.5], "float32"),
)
save(
    "shapes",
    [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["n"], axis=0),
        node("Concat", ["n", "two", "minus"], ["t"], axis=0),
        node("Reshape", ["x", "t"], ["r"]),
        node("Transpose", ["r"], ["p"], perm=[1, 0, 2]),
        node("Slice", ["p", "zero", "minus", "two", "two"], ["q"]),
        node("Pad", ["q", "pads"], ["e"], mode="edge"),
        node("Expand", ["e", "one"], ["f"]),
        node("Tile", ["f", "times"], ["y"]),
    ],
    x,
    y,
    zero=ints(0),
    one=ints(1),
    two=ints(2),
    minus=ints(-1),
    pads=ints(0, 0, 1, 1, 0, 0),
    times=ints(1, 2, 1),
)
save(
    "attention",
    [
        node("MatMul", ["x", "w"], ["q"]),
        node("LayerNormalization", ["q", "g", "g"], ["k"], axis=-1),
        node("Einsum", ["q", "k"], ["a"], equation="ij,kj->ik"),
        node("Softmax", ["a"], ["p"], axis=-1),
        node("Gemm", ["p", "k"], ["o"], alpha=0.5),
        node("Gelu", ["o"], ["y"], domain="com.microsoft"),
    ],
    x,
    y,
    w=floats(4, 4),
    g=floats(4),
)
save(
    "recurrent",
    [
        node("LSTM", ["x", "w", "r", "b"], ["all", "h", "c"], hidden_size=2, direction="bidirectional"),
        node("GRU", ["all_flat", "v", "u"], ["y"], hidden_size=2, linear_before_reset=1),
        node("ReduceSum", ["all", "axis"], ["all_flat"], keepdims=0),
    ],
    [value("x", FLOAT, ["steps", 2, 3])],
    y,
    w=floats(2, 8, 3),
    r=floats(2, 8, 2),
    b=floats(2, 16),
    v=floats(1, 6, 2),
    u=floats(1, 6, 2),
    axis=ints(1),
)
step = graph(
    "step",
    [node("Add", ["sum", "x"], ["next"]), node("Less", ["i", "limit"], ["again"])],
    [value("i", INT, []), value("go", BOOL, []), value("sum", FLOAT, ["n", 4])],
    [value("again", BOOL, []), value("next", FLOAT, ["n", 4]), value("next", FLOAT, ["n", 4])],
    limit=np.array(3),
)
row = graph(
    "row",
    [node("Max", ["state", "element"], ["most"])],
    [value("state", FLOAT, [4]), value("element", FLOAT, [4])],
    [value("most", FLOAT, [4]), value("most", FLOAT, [4])],
)
branch = [graph(name, [node(name, ["table"], ["own"])], [], [value("own", FLOAT, None)]) for name in ("Neg", "Exp")]
save(
    "bodies",
    [
        node("Loop", ["count", "", "x"], ["end", "steps"], body=step),
        node("Scan", ["start", "end"], ["last", "table"], body=row, num_scan_inputs=1),
        node("ReduceMax", ["table"], ["most"], keepdims=0),
        node("Greater", ["most", "zero"], ["is_large"]),
        node("If", ["is_large"], ["y"], then_branch=branch[0], else_branch=branch[1]),
    ],
    x + [value("count", INT, [])],
    y,
    start=floats(4),
    zero=np.float32(0),
)
save(
    "quantised",
    [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        node("DequantizeLinear", ["w", "ws", "wz"], ["e"], axis=1),
        node("MatMul", ["d", "e"], ["m"]),
        node("DynamicQuantizeLinear", ["m"], ["u", "us", "uz"]),
        node("MatMulInteger", ["u", "v", "uz"], ["i"]),
        node("Cast", ["i"], ["y"], to=FLOAT),
    ],
    x,
    y,
    s=np.float32(0.1),
    z=np.uint8(3),
    w=np.arange(8, dtype="int8").reshape(4, 2),
    ws=np.array([0.1, 0.2], "float32"),
    wz=np.array([0, 1], "int8"),
    v=np.arange(6, dtype="uint8").reshape(2, 3),
)
save(
    "data",
    [
        node("NonZero", ["x"], ["places"]),
        node("Transpose", ["places"], ["rows"]),
        node("GatherND", ["x", "rows"], ["found"]),
        node("TopK", ["found", "three"], ["most", "at"], axis=0),
        node("Unique", ["most"], ["distinct", "", "back", ""]),
        node("ScatterElements", ["most", "back", "most"], ["y"], reduction="add"),
    ],
    x,
    y,
    three=ints(3),
)
save(
    "sequences",
    [
        node("SplitToSequence", ["x", "one"], ["all"], axis=1),
        node("SequenceInsert", ["all", "more"], ["longer"]),
        node("SequenceErase", ["longer", "first"], ["rest"]),
        node("ConcatFromSequence", ["rest"], ["y"], axis=1),
        node("Identity", ["x"], ["more"]),
    ],
    x,
    y,
    one=np.array(1),
    first=np.array(0),
)
save(
    "trees",
    [
        node(
            "TreeEnsembleRegressor",
            ["x"],
            ["y"],
            domain="ai.onnx.ml",
            nodes_treeids=[0, 0, 0],
            nodes_nodeids=[0, 1, 2],
            nodes_featureids=[1, 0, 0],
            nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
            nodes_values=[1.0, 0.0, 0.0],
            nodes_truenodeids=[1, 0, 0],
            nodes_falsenodeids=[2, 0, 0],
            target_treeids=[0, 0],
            target_nodeids=[1, 2],
            target_ids=[0, 0],
            target_weights=[10.0, 20.0],
            n_targets=1,
        )
    ],
    x,
    y,
)
