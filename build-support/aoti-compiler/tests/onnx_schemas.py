"""Prints the operators of the `onnx` package with the operator sets that changed them, as onnx_schemas.txt has them."""

import onnx

versions = {}
for schema in onnx.defs.get_all_schemas_with_history():
    versions.setdefault((schema.domain, schema.name), set()).add(schema.since_version)
print(f"# onnx {onnx.__version__}, operator set {onnx.defs.onnx_opset_version()}")
for (domain, name), own in sorted(versions.items()):
    print(domain or "ai.onnx", name, *sorted(own))
