"""Trains the classifier of this example with scikit-learn and writes models/wine.onnx, wine.csv and expected.txt.

Data: scikit-learn's bundled copy of the UCI "Wine" set, 13 measurements of 178 wines from three cultivars. A fifth is held out;
the rows of wine.csv are the first of that fifth.

    pip install scikit-learn skl2onnx onnx onnxruntime safetensors
    python export/train.py
"""

from pathlib import Path

import numpy
import onnxruntime
from safetensors.numpy import save_file
from skl2onnx import convert_sklearn
from skl2onnx.common.data_types import FloatTensorType
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

SEED = 20260
ROWS = 8
HERE = Path(__file__).resolve().parent.parent


def main():
    data = load_wine()
    train, test, train_classes, test_classes = train_test_split(
        data.data, data.target, test_size=0.2, random_state=SEED, stratify=data.target
    )
    classifier = make_pipeline(StandardScaler(), MLPClassifier((32,), max_iter=2000, random_state=SEED))
    classifier.fit(train, train_classes)
    print(f"{classifier.score(test, test_classes):.1%} of {len(test)} held-out wines right")

    # Probabilities as one tensor, not as maps; the label is their maximum.
    model = convert_sklearn(
        classifier,
        initial_types=[("measurements", FloatTensorType([None, 13]))],
        options={id(classifier): {"zipmap": False, "output_class_labels": False}},
        target_opset={"": 18, "ai.onnx.ml": 3},
    )
    # The converter knows no names of dimensions.
    for value in [*model.graph.input, *model.graph.output]:
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    (HERE / "models").mkdir(exist_ok=True)
    path = HERE / "models" / "wine.onnx"
    path.write_bytes(model.SerializeToString())

    rows = test[:ROWS].astype(numpy.float32)
    header = ",".join(["class", *data.feature_names])
    lines = [",".join([str(label), *(f"{value:g}" for value in row)]) for label, row in zip(test_classes, test[:ROWS])]
    (HERE / "wine.csv").write_text("\n".join([header, *lines]) + "\n")

    session = onnxruntime.InferenceSession(path)
    outputs = session.run(None, {"measurements": rows})
    samples = {f"outputs.{index}": output for index, output in enumerate(outputs)}
    save_file({"inputs.0": rows, **samples}, HERE / "models" / "wine.safetensors")
    found = [f"class {row.argmax()}  {100 * row.max():5.1f} %" for row in outputs[1]]
    right = sum(int(row.argmax() == label) for row, label in zip(outputs[1], test_classes))
    (HERE / "expected.txt").write_text("\n".join([*found, f"{right} of {len(found)} right"]) + "\n")


if __name__ == "__main__":
    main()
