"""The toolchain: cargo-aoti and the compilers that it starts."""

AotiToolchainInfo = provider(
    doc = "The programs that compile models.",
    fields = {
        "cargo_aoti": "FilesToRunProvider of cargo-aoti.",
        "cxx": "Path of the C++ compiler; empty for that of Bazel's own C++ toolchain.",
        "ar": "Path of the archiver; empty for that of Bazel's own C++ toolchain.",
        "nvcc": "Path of the CUDA compiler; empty for none.",
        "hipcc": "Path of the HIP compiler; empty for none.",
        "tool_folders": "Folders with the programs that compilers start.",
        "target": "Target triple; empty for the machine that actions run on.",
        "jobs": "Tools that one action runs at once.",
        "files": "depset of all files of these programs.",
    },
)

def _program(ctx, name, files):
    """Returns the path of a program that is given as a target or as an absolute path, and adds its files."""
    target = getattr(ctx.attr, name)
    path = getattr(ctx.attr, name + "_path")
    if target and path:
        fail("name either `%s` or `%s_path`, not both" % (name, name))
    if not target:
        if path and not path.startswith("/"):
            fail("`%s_path` is an absolute path; name a file of the workspace as `%s`" % (name, name))
        return path
    program = target[DefaultInfo].files_to_run.executable
    if not program:
        listed = target[DefaultInfo].files.to_list()
        if len(listed) != 1:
            fail("`%s` is neither a program nor a single file" % name)
        program = listed[0]
    files.append(target[DefaultInfo].files)
    files.append(target[DefaultInfo].default_runfiles.files)
    return program.path

def _aoti_toolchain_impl(ctx):
    files = [target[DefaultInfo].files for target in ctx.attr.files]
    info = AotiToolchainInfo(
        cargo_aoti = ctx.attr.cargo_aoti[DefaultInfo].files_to_run,
        cxx = _program(ctx, "cxx", files),
        ar = _program(ctx, "ar", files),
        nvcc = _program(ctx, "nvcc", files),
        hipcc = _program(ctx, "hipcc", files),
        tool_folders = ctx.attr.tool_folders,
        target = ctx.attr.target,
        jobs = ctx.attr.jobs,
        files = depset(transitive = files),
    )
    return [platform_common.ToolchainInfo(aoti = info)]

_TOOL = {"allow_files": True, "cfg": "exec"}

aoti_toolchain = rule(
    implementation = _aoti_toolchain_impl,
    doc = "cargo-aoti and the compilers that it starts, as inputs of the actions that compile models.",
    attrs = {
        "cargo_aoti": attr.label(
            doc = "The program `cargo-aoti`.",
            mandatory = True,
            executable = True,
            allow_files = True,
            cfg = "exec",
        ),
        "cxx": attr.label(doc = "C++ compiler; by default that of Bazel's own C++ toolchain.", **_TOOL),
        "cxx_path": attr.string(doc = "The same by its absolute path on the machines that run actions."),
        "ar": attr.label(doc = "Archiver; by default that of Bazel's own C++ toolchain.", **_TOOL),
        "ar_path": attr.string(doc = "The same by its absolute path."),
        "nvcc": attr.label(doc = "CUDA compiler, for models with `devices = [\"cuda\"]`.", **_TOOL),
        "nvcc_path": attr.string(doc = "The same by its absolute path."),
        "hipcc": attr.label(doc = "HIP compiler, for models with `devices = [\"rocm\"]`.", **_TOOL),
        "hipcc_path": attr.string(doc = "The same by its absolute path."),
        "files": attr.label_list(
            doc = "Everything else that the compilers read or start: headers, libraries, assembler.",
            allow_files = True,
            cfg = "exec",
        ),
        "tool_folders": attr.string_list(
            doc = "Folders with programs that compilers start by name, if these are not beside the compilers.",
        ),
        "target": attr.string(doc = "Target triple, such as `aarch64-unknown-linux-gnu`; by default the machine that runs actions."),
        "jobs": attr.int(doc = "Tools that one action runs at once.", default = 2),
    },
)
