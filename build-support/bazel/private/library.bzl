"""One model as a C++ library."""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME", "CPP_LINK_STATIC_LIBRARY_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

_TYPE = "@aoti//:toolchain_type"

def _compilers(ctx, aoti, cc_toolchain, features):
    """Returns the paths of C++ compiler and archiver: the toolchain's, else those of Bazel's own C++ toolchain."""
    cxx, ar = aoti.cxx, aoti.ar
    if not cxx:
        cxx = cc_common.get_tool_for_action(feature_configuration = features, action_name = CPP_COMPILE_ACTION_NAME)
        if not ar:
            ar = cc_common.get_tool_for_action(
                feature_configuration = features,
                action_name = CPP_LINK_STATIC_LIBRARY_ACTION_NAME,
            )
    return cxx, ar

def _add_code(ctx, args):
    """Adds what the target says of the code: the keys of the manifest."""
    attr = ctx.attr
    for flag, values in [
        ("--devices", attr.devices),
        ("--cpu", attr.cpu),
        ("--cuda", attr.cuda),
        ("--rocm", attr.rocm),
        ("--outputs", attr.outputs),
        ("--allow-tf32", attr.allow_tf32),
    ]:
        args.add_joined(flag, values, join_with = ",")
    args.add_all(attr.libraries, before_each = "--library")
    args.add_all(["%s=%s" % (old, new) for old, new in attr.dims.items()], before_each = "--dims")
    args.add("--weights", attr.weights)
    if attr.named_weights:
        args.add("--named-weights")
    if ctx.file.lock:
        args.add("--lock", ctx.file.lock)
    if ctx.file.operators:
        args.add("--operators", ctx.file.operators)

def _aoti_library_impl(ctx):
    aoti = ctx.toolchains[_TYPE].aoti
    cc_toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = cc_toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    name = ctx.attr.model_name or ctx.label.name
    identifier = name.replace("-", "_")
    folder = ctx.label.name + ".aoti/"
    outputs = {
        "library": ctx.actions.declare_file(folder + "lib%s.a" % ctx.label.name),
        "header": ctx.actions.declare_file(folder + "include/aoti_%s.h" % identifier),
        "abi": ctx.actions.declare_file(folder + "include/aoti/abi.h"),
        "bindings": ctx.actions.declare_file(folder + "%s.rs" % identifier),
        "manifest": ctx.actions.declare_file(folder + "manifest.json"),
    }
    if ctx.attr.weights == "external":
        outputs["weights"] = ctx.actions.declare_file(folder + "%s.weights.bin" % identifier)

    cxx, ar = _compilers(ctx, aoti, cc_toolchain, features)
    args = ctx.actions.args()
    args.add_all(["aoti", "compile", "--quiet", ctx.file.model])
    args.add("--name", name)
    args.add("--namespace", "@%s//%s" % (ctx.label.workspace_name, ctx.label.package))
    for kind, file in outputs.items():
        args.add("--emit")
        args.add(file, format = kind + "=%s")
    args.add("--cxx", cxx)
    for flag, value in [("--ar", ar), ("--nvcc", aoti.nvcc), ("--hipcc", aoti.hipcc), ("--target", aoti.target)]:
        if value:
            args.add(flag, value)
    args.add_all(aoti.tool_folders, before_each = "--tool-folder")
    args.add("--jobs", aoti.jobs)
    _add_code(ctx, args)
    lists = [depset(ctx.files.model + ctx.files.data + ctx.files.lock + ctx.files.operators), aoti.files]
    ctx.actions.run(
        mnemonic = "AotiCompile",
        progress_message = "Compiling model %s" % ctx.label,
        executable = aoti.cargo_aoti,
        arguments = [args],
        inputs = depset(transitive = lists + ([] if aoti.cxx else [cc_toolchain.all_files])),
        outputs = outputs.values(),
        # Nothing of the environment: the programs are named, and their results follow from what they read.
        env = {},
        use_default_shell_env = False,
        execution_requirements = {"block-network": ""},
    )
    return _providers(ctx, outputs, cc_toolchain, features)

def _providers(ctx, outputs, cc_toolchain, features):
    header = outputs["header"]
    library = cc_common.create_library_to_link(
        actions = ctx.actions,
        feature_configuration = features,
        cc_toolchain = cc_toolchain,
        pic_static_library = outputs["library"],
    )
    linker_input = cc_common.create_linker_input(
        owner = ctx.label,
        libraries = depset([library]),
        user_link_flags = depset(["-lm"]),
    )
    cc_info = CcInfo(
        compilation_context = cc_common.create_compilation_context(
            headers = depset([header, outputs["abi"]]),
            includes = depset([header.dirname]),
        ),
        linking_context = cc_common.create_linking_context(linker_inputs = depset([linker_input])),
    )
    groups = {
        "rust": depset([outputs["bindings"], outputs["library"]]),
        "bindings": depset([outputs["bindings"]]),
        "library": depset([outputs["library"]]),
        "header": depset([header, outputs["abi"]]),
        "manifest": depset([outputs["manifest"]]),
    }
    data = []
    if "weights" in outputs:
        groups["weights"] = depset([outputs["weights"]])
        data.append(outputs["weights"])
    return [
        DefaultInfo(files = depset([outputs["library"]] + data), runfiles = ctx.runfiles(files = data)),
        cc_info,
        OutputGroupInfo(**groups),
    ]

aoti_library = rule(
    implementation = _aoti_library_impl,
    doc = "Compiles a model into a static library with a C header and a Rust module.",
    attrs = {
        "model": attr.label(doc = "The model's file.", mandatory = True, allow_single_file = [".pt2", ".onnx", ".aoti"]),
        "data": attr.label_list(doc = "Files that the model's file refers to, and sources of custom operators.", allow_files = True),
        "model_name": attr.string(doc = "Name of the model; by default that of the target."),
        "devices": attr.string_list(doc = "`cpu`, `cuda`, `rocm`; by default `cpu`."),
        "cpu": attr.string_list(doc = "Instruction-set levels; by default those of the target."),
        "cuda": attr.string_list(doc = "Architectures of NVIDIA GPUs."),
        "rocm": attr.string_list(doc = "Architectures of AMD GPUs."),
        "weights": attr.string(
            doc = "`embed`: in the library; `external`: in a file that the program loads, among the runfiles.",
            default = "embed",
            values = ["embed", "external"],
        ),
        "named_weights": attr.bool(doc = "The library also accepts other weights by name."),
        "outputs": attr.string_list(doc = "Names of the outputs, all of them in order."),
        "dims": attr.string_dict(doc = "Names of dimensions, by the program's names."),
        "allow_tf32": attr.string_list(doc = "`matmul`, `conv` or `none`: operations that may use TF32."),
        "libraries": attr.string_list(doc = "Vendor libraries that records may choose for matrix products."),
        "lock": attr.label(doc = "Tuning records: `aoti.lock`.", allow_single_file = True),
        "operators": attr.label(doc = "`Cargo.toml` that declares custom operators; their sources go into `data`.", allow_single_file = True),
        "_cc_toolchain": attr.label(default = Label("@bazel_tools//tools/cpp:current_cc_toolchain")),
    },
    fragments = ["cpp"],
    toolchains = [_TYPE, "@bazel_tools//tools/cpp:toolchain_type"],
    incompatible_use_toolchain_transition = True,
)
