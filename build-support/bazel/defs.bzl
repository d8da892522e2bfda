"""Rules for deep-learning models that cargo-aoti compiles ahead of time.

`aoti_library` compiles a model; its target is a dependency of `cc_binary` and `cc_library`, and has the generated Rust
module in the output group `rust`. `aoti_toolchain` declares the compilers that actions run.
"""

load(":private/library.bzl", _aoti_library = "aoti_library")
load(":private/toolchain.bzl", _aoti_toolchain = "aoti_toolchain", _AotiToolchainInfo = "AotiToolchainInfo")

aoti_library = _aoti_library
aoti_toolchain = _aoti_toolchain
AotiToolchainInfo = _AotiToolchainInfo
