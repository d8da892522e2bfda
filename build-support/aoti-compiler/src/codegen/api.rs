//! The file with the model's table: argument checks, sizes, and the choice of the CPU level.

use super::c_family::expr::scalar;
use super::interface::{Interface, ValueInterface};
use super::run::{InitialState, RunPlan, relation};
use crate::graph::SymbolSource;
use crate::loops::{BufferId, Program};
use crate::symbolic::{Expr, Node, RangeTable, Ranges, Symbol};
use std::fmt::Write;

/// A CPU level as the toolchain names it, and as C++ tests for it.
struct LevelText {
    name: String,
    /// The level's part in identifiers.
    tag: String,
    test: &'static str,
}

fn level_text(name: &str) -> LevelText {
    let test = match name {
        "x86-64-v3" => {
            "__builtin_cpu_init();\n    return __builtin_cpu_supports(\"avx2\") && __builtin_cpu_supports(\"fma\") && \
             __builtin_cpu_supports(\"bmi\") && __builtin_cpu_supports(\"bmi2\");"
        }
        "x86-64-v4" => {
            "__builtin_cpu_init();\n    return __builtin_cpu_supports(\"avx2\") && __builtin_cpu_supports(\"fma\") && \
             __builtin_cpu_supports(\"bmi2\") && __builtin_cpu_supports(\"avx512f\") && \
             __builtin_cpu_supports(\"avx512bw\") && __builtin_cpu_supports(\"avx512cd\") && \
             __builtin_cpu_supports(\"avx512dq\") && __builtin_cpu_supports(\"avx512vl\");"
        }
        // The baseline of a target runs everywhere; `native` is for the machine that builds.
        _ => "return true;",
    };
    LevelText { name: name.to_owned(), tag: level_tag(name), test }
}

/// The level's part in identifiers and file names: `v3`, `native`, `base`.
pub(super) fn level_tag(name: &str) -> String {
    match name {
        "x86-64" => "base".to_owned(),
        _ => name.strip_prefix("x86-64-").unwrap_or(name).replace(|c: char| !c.is_ascii_alphanumeric(), "_"),
    }
}

pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.push_str(&format!("\\{}", byte as char)),
            0x20..=0x7e if byte != b'?' => out.push(byte as char),
            // Three octal digits end by themselves, and question marks form no trigraph.
            _ => out.push_str(&format!("\\{byte:03o}")),
        }
    }
    out.push('"');
    out
}

/// What the table is printed from.
pub(super) struct Api<'a> {
    pub(super) program: &'a Program,
    pub(super) ranges: &'a RangeTable,
    pub(super) run: &'a RunPlan,
    pub(super) interface: &'a Interface,
    pub(super) identifier: &'a str,
    pub(super) levels: &'a [String],
    pub(super) embedded: bool,
    /// What makes weights from tensors by name, if the library does.
    pub(super) preparation: Option<&'a str>,
}

impl Api<'_> {
    /// The whole file.
    pub(super) fn print(&self) -> String {
        let id = self.identifier;
        let mut out = format!(
            "// The C interface of the model {}, written by cargo-aoti.\n#include \"aoti/model.h\"\n{}#include <string.h>\n\nusing namespace aoti;\n\n",
            super::docs::code(&self.interface.name).replace('\n', " "),
            if self.preparation.is_some() { "#include \"aoti/prepare.h\"\n" } else { "" }
        );
        out.push_str(&self.tables());
        out.push_str(&self.levels());
        let failures: Vec<String> = self.run.failures.values().map(|text| quoted(text)).collect();
        out.push_str(&list("failure_texts", &failures));
        out.push_str(&self.sizes());
        out.push_str(&self.functions());
        out.push_str(self.preparation.unwrap_or_default());
        let prepare = match self.preparation {
            Some(_) => "prepare_bytes, prepare_weights",
            None => "nullptr, nullptr",
        };
        let _ = write!(
            out,
            "static const AotiApi api = {{AOTI_ABI_VERSION, sizeof(AotiApi), &info, create, destroy, output_sizes, workspace_bytes,\n\
             \x20                            init_state, run, level, {prepare}}};\n\n\
             extern \"C\" __attribute__((visibility(\"default\"))) const AotiApi *aoti_{id}_api(void) {{ return &api; }}\n"
        );
        out
    }

    fn tables(&self) -> String {
        let mut out = String::new();
        for (kind, values) in [
            ("input", &self.interface.inputs),
            ("output", &self.interface.outputs),
            ("state", &self.interface.states),
        ] {
            out.push_str(&value_table(kind, values));
        }
        let constants = &self.interface.constants;
        for (k, constant) in constants.iter().enumerate() {
            let sizes: Vec<String> = constant.sizes.iter().map(ToString::to_string).collect();
            if !sizes.is_empty() {
                let _ =
                    writeln!(out, "static const int64_t constant_sizes_{k}[] = {{{}}};", sizes.join(", "));
            }
        }
        if !constants.is_empty() {
            out.push_str("static const AotiConstantInfo constants[] = {\n");
            for (k, constant) in constants.iter().enumerate() {
                let sizes = if constant.sizes.is_empty() {
                    "nullptr".to_owned()
                } else {
                    format!("constant_sizes_{k}")
                };
                let _ = writeln!(
                    out,
                    "    {{{}, {sizes}, {}, {}, {}, {}}},",
                    quoted(&constant.name),
                    constant.dtype as u8,
                    constant.sizes.len(),
                    constant.tied.map_or_else(|| "-1".to_owned(), |tied| tied.to_string()),
                    u8::from(constant.is_read)
                );
            }
            out.push_str("};\n");
        }
        let table =
            |name: &str, count: usize| if count == 0 { "nullptr".to_owned() } else { name.to_owned() };
        let i = self.interface;
        let _ = write!(
            out,
            "static const AotiModelInfo info = {{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}};\n\n",
            quoted(&i.name),
            quoted(concat!("cargo-aoti ", env!("CARGO_PKG_VERSION"))),
            i.inputs.len(),
            i.outputs.len(),
            i.constants.len(),
            i.states.len(),
            table("inputs_info", i.inputs.len()),
            table("outputs_info", i.outputs.len()),
            table("constants", i.constants.len()),
            table("states_info", i.states.len()),
            i.weights_bytes,
            i.state_bytes
        );
        out
    }

    fn levels(&self) -> String {
        let id = self.identifier;
        let mut out = String::new();
        let levels: Vec<LevelText> = self.levels.iter().map(|name| level_text(name)).collect();
        for level in &levels {
            let _ = writeln!(
                out,
                "extern \"C\" int32_t aoti_{id}_run_{tag}(const Run &, int64_t *);\n\
                 extern \"C\" int64_t aoti_{id}_scratch_{tag}(const int64_t *, int64_t);",
                tag = level.tag
            );
        }
        if self.embedded && self.interface.weights_bytes > 0 {
            let _ = writeln!(out, "extern \"C\" const char aoti_{id}_weights[];");
        }
        out.push_str("\nstatic const Level levels[] = {\n");
        for level in &levels {
            let _ = writeln!(
                out,
                "    {{{}, [] {{\n    {}\n  }}, aoti_{id}_run_{tag}, aoti_{id}_scratch_{tag}}},",
                quoted(&level.name),
                level.test,
                tag = level.tag
            );
        }
        let _ = write!(
            out,
            "}};\nconstexpr int n_levels = {};\nconstexpr int n_symbols = {};\n\nstruct AotiModel {{\n  const char *weights;\n  int level;\n}};\n\n",
            levels.len(),
            self.program.symbols.len().max(1)
        );
        out
    }

    /// Reads the symbols from the inputs and checks every relation between sizes.
    fn sizes(&self) -> String {
        let program = self.program;
        let mut out = String::from(
            "static int32_t bind(const AotiTensor *inputs, int32_t n_inputs, int64_t *symbols, AotiError *error) {\n",
        );
        let inputs = self.interface.inputs.len();
        let table = if inputs == 0 { "nullptr" } else { "inputs_info" };
        let _ = writeln!(
            out,
            "  if (int32_t code = check_tensors(\"input\", inputs, n_inputs, {table}, {inputs}, error)) return code;\n  (void)symbols;"
        );
        for (k, info) in program.symbols.iter().enumerate() {
            let symbol = Symbol::size(u32::try_from(k).expect("symbols are few"));
            match info.source {
                SymbolSource::InputDim { input, axis } => {
                    let _ = writeln!(out, "  const i64 s{k} = symbols[{k}] = {};", self.dim_of(input, axis));
                }
                SymbolSource::InputValue { input } => {
                    let _ = write!(
                        out,
                        "  const i64 s{k} = symbols[{k}] = *(const int64_t *)inputs[{}].data;\n\
                         \x20 if (s{k} < {min} || s{k} > {max})\n    return fail(error, AOTI_ERROR_RANGE, \"input `%s` is %lld, must be in %lld..=%lld\", {name}, (long long)s{k}, (long long){min}, (long long){max});\n",
                        self.user_position(input),
                        min = scalar(&Expr::int(info.range.min)),
                        max = scalar(&Expr::int(info.range.max)),
                        name = quoted(&info.name)
                    );
                }
                SymbolSource::Data => {
                    let _ = writeln!(
                        out,
                        "  const i64 s{k} = symbols[{k}] = {}; // not known before the run: its bound",
                        scalar(&Expr::int(self.ranges.range(symbol).max))
                    );
                }
            }
            let _ = writeln!(out, "  (void)s{k};");
        }
        for (position, buffer) in program.inputs.iter().enumerate() {
            for (d, size) in program.buffers[*buffer].shape.iter().enumerate() {
                if size.as_int().is_some() || self.binds(size, *buffer, d) {
                    continue;
                }
                let _ = writeln!(
                    out,
                    "  if (int32_t code = check_equal(\"input\", inputs, inputs_info, {position}, {d}, {}, error)) return code;",
                    scalar(size)
                );
            }
        }
        for check in &self.run.checks {
            let _ = writeln!(
                out,
                "  if (!({})) return fail(error, AOTI_ERROR_GUARD, \"%s\", failure_texts[{}]);",
                relation(&check.holds),
                check.failure.as_u32()
            );
        }
        out.push_str("  return AOTI_OK;\n}\n\n");
        out
    }

    /// Whether this size is where its symbol is read from.
    fn binds(&self, size: &Expr, buffer: BufferId, axis: usize) -> bool {
        let Node::Sym(symbol) = size.node() else { return false };
        let Some(info) = self.program.symbols.get(symbol.index as usize) else { return false };
        match info.source {
            SymbolSource::InputDim { input, axis: own } => {
                own == axis && self.graph_input(input) == Some(buffer)
            }
            SymbolSource::InputValue { .. } | SymbolSource::Data => false,
        }
    }

    /// The buffer of an input counted with the states.
    fn graph_input(&self, input: usize) -> Option<BufferId> {
        self.program.graph_inputs.get(input).copied()
    }

    fn user_position(&self, input: usize) -> usize {
        let buffer = self.graph_input(input);
        let inputs = &self.program.inputs;
        inputs.iter().position(|own| Some(*own) == buffer).unwrap_or(0)
    }

    fn dim_of(&self, input: usize, axis: usize) -> String {
        format!("inputs[{}].sizes[{axis}]", self.user_position(input))
    }

    fn functions(&self) -> String {
        let program = self.program;
        let locals: String = (0..program.symbols.len())
            .map(|k| format!("  const i64 s{k} = symbols[{k}];\n  (void)s{k};\n"))
            .collect();
        let mut output_sizes = String::new();
        let mut output_checks = String::new();
        for (k, buffer) in program.outputs.iter().enumerate() {
            for (d, size) in program.buffers[*buffer].shape.iter().enumerate() {
                let _ = writeln!(output_sizes, "  sizes[{k}][{d}] = {};", scalar(size));
                if size.as_int().is_none() {
                    let _ = writeln!(
                        output_checks,
                        "  if (int32_t code = check_equal(\"output\", outputs, outputs_info, {k}, {d}, {}, error)) return code;",
                        scalar(size)
                    );
                }
            }
        }
        let sites: Vec<String> = program.sites.iter().map(|text| quoted(text)).collect();
        let states = self.run.states.iter();
        let init: String = states
            .map(|InitialState { offset, value, bytes }| {
                format!("  memcpy((char *)state + {offset}, model->weights + {value}, {bytes});\n")
            })
            .collect();
        let weights = if self.embedded && self.interface.weights_bytes > 0 {
            format!("aoti_{}_weights", self.identifier)
        } else {
            "nullptr".to_owned()
        };
        let outputs_table = if program.outputs.is_empty() { "nullptr" } else { "outputs_info" };
        format!(
            "{}{}",
            list("site_texts", &sites),
            FUNCTIONS
                .replace("@LOCALS@", &locals)
                .replace("@ARENA@", &scalar(&self.run.arena_bytes))
                .replace("@OUTPUT_SIZES@", &output_sizes)
                .replace("@OUTPUT_CHECKS@", &output_checks)
                .replace("@OUTPUTS_TABLE@", outputs_table)
                .replace("@N_OUTPUTS@", &program.outputs.len().to_string())
                .replace("@N_INPUTS@", &program.inputs.len().to_string())
                .replace("@INIT_STATE@", &init)
                .replace("@WEIGHTS@", &weights)
        )
    }
}

fn value_table(kind: &str, values: &[ValueInterface]) -> String {
    let mut out = String::new();
    for (k, value) in values.iter().enumerate() {
        if value.dims.is_empty() {
            continue;
        }
        let dims: Vec<String> = value
            .dims
            .iter()
            .map(|dim| {
                let expression = dim.expression.as_deref().map_or_else(|| "nullptr".to_owned(), quoted);
                format!("{{{expression}, {}, {}}}", dim.min, dim.max)
            })
            .collect();
        let _ = writeln!(out, "static const AotiDimInfo {kind}_dims_{k}[] = {{{}}};", dims.join(", "));
    }
    if values.is_empty() {
        return out;
    }
    let _ = writeln!(out, "static const AotiValueInfo {kind}s_info[] = {{");
    for (k, value) in values.iter().enumerate() {
        let dims = if value.dims.is_empty() { "nullptr".to_owned() } else { format!("{kind}_dims_{k}") };
        let _ = writeln!(
            out,
            "    {{{}, {}, {}, {dims}}},",
            quoted(&value.name),
            value.dtype as u8,
            value.dims.len()
        );
    }
    out.push_str("};\n");
    out
}

/// A table of strings, which is never empty.
fn list(name: &str, texts: &[String]) -> String {
    let texts = if texts.is_empty() { "\"\"".to_owned() } else { texts.join(",\n    ") };
    format!("static const char *const {name}[] = {{\n    {texts}}};\n")
}

/// The functions of the table; what depends on the model stands between at signs.
const FUNCTIONS: &str = r#"
static int32_t create(const AotiCreateOptions *options, AotiModel **model, AotiError *error) {
  if (!model) return fail(error, AOTI_ERROR_NULL, "the place for the model is null");
  int level = options ? options->cpu_level : -1;
  if (level >= n_levels) return fail(error, AOTI_ERROR_CPU, "level %d does not exist, there are %d", level, n_levels);
  if (level >= 0 && !levels[level].runs_here())
    return fail(error, AOTI_ERROR_CPU, "this processor does not run %s", levels[level].name);
  for (int i = n_levels; level < 0 && i-- > 0;)
    if (levels[i].runs_here()) level = i;
  if (level < 0) return fail(error, AOTI_ERROR_CPU, "this processor runs none of the compiled levels");
  const void *weights = options ? options->weights : nullptr;
  if (weights && options->weights_bytes != info.weights_bytes)
    return fail(error, AOTI_ERROR_WEIGHTS, "the weights have %lld bytes, must have %lld",
                (long long)options->weights_bytes, (long long)info.weights_bytes);
  if (!weights) weights = @WEIGHTS@;
  if (!weights && info.weights_bytes > 0)
    return fail(error, AOTI_ERROR_WEIGHTS, "the weights are not embedded and none are given");
  if (uintptr_t(weights) % AOTI_ALIGNMENT != 0)
    return fail(error, AOTI_ERROR_ALIGNMENT, "the weights are not aligned to %d bytes", AOTI_ALIGNMENT);
  AotiModel *made = (AotiModel *)malloc(sizeof(AotiModel));
  if (!made) return fail(error, AOTI_ERROR_MEMORY, "out of memory");
  made->weights = (const char *)weights;
  made->level = level;
  *model = made;
  return succeed(error);
}

static void destroy(AotiModel *model) { free(model); }

static const char *level(const AotiModel *model) { return model ? levels[model->level].name : ""; }

static void write_sizes(const int64_t *symbols, int64_t *const *sizes) {
  (void)symbols, (void)sizes;
@LOCALS@@OUTPUT_SIZES@}

static int32_t output_sizes(const AotiModel *model, const AotiTensor *inputs, int32_t n_inputs, int64_t *const *sizes,
                            AotiError *error) {
  (void)model;
  int64_t symbols[n_symbols] = {};
  if (int32_t code = bind(inputs, n_inputs, symbols, error)) return code;
  if (@N_OUTPUTS@ > 0 && !sizes) return fail(error, AOTI_ERROR_NULL, "the place for sizes is null");
  write_sizes(symbols, sizes);
  return succeed(error);
}

static int64_t arena_bytes(const int64_t *symbols) {
  (void)symbols;
@LOCALS@  return align(@ARENA@);
}

static int32_t workspace_bytes(const AotiModel *model, const AotiTensor *inputs, int32_t n_inputs, int32_t threads,
                               int64_t *bytes, AotiError *error) {
  if (!model || !bytes) return fail(error, AOTI_ERROR_NULL, "the model or the place for the size is null");
  int64_t symbols[n_symbols] = {};
  if (int32_t code = bind(inputs, n_inputs, symbols, error)) return code;
  *bytes = arena_bytes(symbols) + levels[model->level].scratch_bytes(symbols, threads > 1 ? threads : 1);
  return succeed(error);
}

static int32_t init_state(const AotiModel *model, void *state, AotiError *error) {
  if (!model) return fail(error, AOTI_ERROR_NULL, "the model is null");
  if (!state && info.state_bytes > 0) return fail(error, AOTI_ERROR_NULL, "the state is null");
@INIT_STATE@  return succeed(error);
}

static int32_t run(const AotiModel *model, const AotiTensor *inputs, int32_t n_inputs, const AotiTensor *outputs,
                   int32_t n_outputs, int64_t *const *sizes, void *state, void *workspace, int64_t bytes,
                   const AotiContext *context, AotiError *error) {
  if (!model) return fail(error, AOTI_ERROR_NULL, "the model is null");
  int64_t symbols[n_symbols] = {};
  if (int32_t code = bind(inputs, n_inputs, symbols, error)) return code;
  if (int32_t code = check_tensors("output", outputs, n_outputs, @OUTPUTS_TABLE@, @N_OUTPUTS@, error)) return code;
@LOCALS@@OUTPUT_CHECKS@  static const AotiContext alone = {nullptr, nullptr, 1, 0, nullptr};
  if (!context || !context->parallel_for || context->threads < 1) context = &alone;
  const Level &chosen = levels[model->level];
  int64_t arena = arena_bytes(symbols), needed = arena + chosen.scratch_bytes(symbols, context->threads);
  if (needed > 0 && !workspace) return fail(error, AOTI_ERROR_NULL, "the workspace is null");
  if (bytes < needed)
    return fail(error, AOTI_ERROR_WORKSPACE, "the workspace has %lld bytes, must have %lld", (long long)bytes,
                (long long)needed);
  if (uintptr_t(workspace) % AOTI_ALIGNMENT != 0)
    return fail(error, AOTI_ERROR_ALIGNMENT, "the workspace is not aligned to %d bytes", AOTI_ALIGNMENT);
  if (info.state_bytes > 0 && (!state || uintptr_t(state) % AOTI_ALIGNMENT != 0))
    return fail(error, state ? AOTI_ERROR_ALIGNMENT : AOTI_ERROR_NULL, "the state is missing or not aligned");
  const void *input_data[@N_INPUTS@ + 1];
  void *output_data[@N_OUTPUTS@ + 1];
  for (int32_t i = 0; i < @N_INPUTS@; ++i) input_data[i] = inputs[i].data;
  for (int32_t i = 0; i < @N_OUTPUTS@; ++i) output_data[i] = outputs[i].data;
  int fault = 0;
  const Run now = {context, input_data, output_data, (char *)state, model->weights, (char *)workspace,
                   (char *)workspace + arena, &fault};
  int32_t failed = chosen.run(now, symbols);
  if (failed > 0) return fail(error, AOTI_ERROR_ASSERT, "%s", failure_texts[failed - 1]);
  if (fault > 0)
    return fail(error, AOTI_ERROR_INDEX, "an index is outside its dimension in %s", site_texts[fault - 1]);
  if (sizes) write_sizes(symbols, sizes);
  return succeed(error);
}

"#;
