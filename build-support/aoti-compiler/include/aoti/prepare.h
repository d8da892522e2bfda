// Makes a model's weights from tensors by name: checks them against the model's table, runs the constant graph (what the
// compiler did to weights), and lays out the result as kernels read it. A generated file supplies tables and graph.
// Owns no memory; knows nothing of files.
#pragma once

#include "model.h"
#include "pack.h"

namespace aoti {
namespace {

// Where a piece of the weights comes from.
enum PieceSource : int32_t {
  kGiven,    // a tensor given: an input of the constant graph
  kComputed, // an output of the constant graph
  kFixed     // bytes of the library, already as they are read
};

// In which form a piece lies in the weights. Numbers are those of the function in `pack.h`, after the first element.
enum PieceForm : int32_t {
  kPlain,          // as it is
  kProduct,        // offset, row_stride, col_stride, k, n
  kNarrowProduct,  // the same, of elements of a narrow type
  kConv,           // groups, channels, k
  kConvTransposed, // groups, in_channels, rows
  kByTap,          // channels, in_channels, taps
  kTapPanels,      // groups, channels, in_channels, taps
  kProductWords,   // as a product, of integers
  kTapWords        // as panels of taps, of integers
};

struct Piece {
  int64_t offset, bytes; // in the weights
  PieceSource source;
  int64_t position; // of an input or output; an offset into the library's bytes
  int32_t dtype;
  PieceForm form;
  int64_t numbers[5];
};

// Everything that the generated file knows.
struct Preparation {
  const AotiModelInfo *info; // whose constants are in the order of their names' bytes
  const int32_t *inputs; // the constant that each input of the graph is
  int32_t n_inputs;
  const int64_t *outputs; // where each output of the graph lies among all
  int32_t n_outputs;
  const Piece *pieces;
  int32_t n_pieces;
  bool packs_doubles; // whether some of them are f64 in another form than the tensor's
  int64_t output_bytes, arena_bytes;
  const char *fixed;
  int32_t (*run)(const Run &run);
  int64_t (*scratch_bytes)(const int64_t *, int64_t);
  const char *const *sites;
};

inline int64_t pointer_bytes(const Preparation &p) {
  return aligned(int64_t(sizeof(void *)) * (int64_t(p.info->n_constants) + p.n_inputs + p.n_outputs));
}

// What is wrong with the tensors, as it is found: the first stays in the error, the caller hears of all.
struct Findings {
  const AotiPrepareOptions *options;
  AotiError first;
  int64_t count;

  __attribute__((format(printf, 2, 3))) void add(const char *format, ...) {
    char text[4 * AOTI_MESSAGE_BYTES]; // names may be long
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (count++ == 0) fail(&first, AOTI_ERROR_WEIGHTS, "%s", text);
    if (options && options->finding) options->finding(options->arg, text);
  }
};

// Element type and sizes, such as "f32 of [3, 4]"; long lists of sizes are cut.
struct TypeText {
  char text[96];
  TypeText(int32_t dtype, int32_t rank, const int64_t *sizes) {
    int at = snprintf(text, sizeof text, "%s of [", dtype_name(dtype));
    for (int32_t d = 0; d < rank && at < 80; ++d)
      at += snprintf(text + at, sizeof text - size_t(at), d ? ", %lld" : "%lld", (long long)sizes[d]);
    snprintf(text + (at < 94 ? at : 94), 2, "]");
  }
};

inline const AotiConstantInfo *find_constant(const Preparation &p, const char *name) {
  int32_t low = 0, high = p.info->n_constants;
  while (low < high) {
    const int32_t middle = low + (high - low) / 2;
    const int order = strcmp(p.info->constants[middle].name, name);
    if (order == 0) return p.info->constants + middle;
    (order < 0 ? low : high) = order < 0 ? middle + 1 : middle;
  }
  return nullptr;
}

inline int64_t element_count(const AotiConstantInfo &info) {
  int64_t count = 1;
  for (int32_t d = 0; d < info.rank; ++d) count *= info.sizes[d];
  return count;
}

// Whether a tensor is what a constant must be.
inline bool check_weight(const AotiTensor &tensor, const AotiConstantInfo &info, Findings &findings) {
  if (tensor.device.kind != AOTI_CPU) {
    findings.add("weight `%s` lies on a device, must lie in memory that the processor sees", info.name);
    return false;
  }
  bool same = tensor.dtype == info.dtype && tensor.rank == info.rank && (info.rank == 0 || tensor.sizes);
  for (int32_t d = 0; same && d < info.rank; ++d) same = tensor.sizes[d] == info.sizes[d];
  if (!same) {
    const TypeText given(tensor.dtype, tensor.sizes ? tensor.rank : 0, tensor.sizes);
    const TypeText wanted(info.dtype, info.rank, info.sizes);
    findings.add("weight `%s` is %s, must be %s", info.name, given.text, wanted.text);
    return false;
  }
  const int64_t count = element_count(info);
  int64_t stride = 1;
  for (int32_t d = info.rank; tensor.strides && count > 0 && d-- > 0; stride *= info.sizes[d])
    if (info.sizes[d] != 1 && tensor.strides[d] != stride) {
      findings.add("weight `%s` is not contiguous", info.name);
      return false;
    }
  if (!tensor.data && count > 0) {
    findings.add("weight `%s` has no data", info.name);
    return false;
  }
  if (uintptr_t(tensor.data) % uintptr_t(dtype_bytes(info.dtype)) != 0) {
    findings.add("weight `%s`: the address is not aligned for %s", info.name, dtype_name(info.dtype));
    return false;
  }
  return true;
}

// Finds the tensor for each constant, by its own name or by one that is tied to it, and says what is wrong.
inline void find_weights(const Preparation &p, const AotiNamedTensor *tensors, int32_t n, const void **found,
                         Findings &findings) {
  static const char taken = 0; // stands for a tensor that was given and is not usable
  for (int32_t i = 0; i < n; ++i) {
    const AotiConstantInfo *info = tensors[i].name ? find_constant(p, tensors[i].name) : nullptr;
    if (!info) {
      findings.add("`%s` is not a weight of the model", tensors[i].name ? tensors[i].name : "");
      continue;
    }
    const void *&own = found[info - p.info->constants];
    if (own) {
      findings.add("weight `%s` is given twice", info->name);
      continue;
    }
    const AotiTensor &tensor = tensors[i].tensor;
    own = check_weight(tensor, *info, findings) && tensor.data ? tensor.data : &taken;
  }
  for (int32_t k = 0; k < p.info->n_constants; ++k) {
    const AotiConstantInfo &info = p.info->constants[k];
    if (info.tied_to < 0 || !found[k]) continue;
    const void *&original = found[info.tied_to];
    const size_t bytes = size_t(element_count(info) * dtype_bytes(info.dtype));
    if (!original)
      original = found[k];
    else if (found[k] != &taken && original != &taken && memcmp(original, found[k], bytes) != 0)
      findings.add("weights `%s` and `%s` are one tensor of the model but are given with different elements",
                   p.info->constants[info.tied_to].name, info.name);
  }
  for (int32_t k = 0; k < p.info->n_constants; ++k)
    if (p.info->constants[k].is_read && p.info->constants[k].tied_to < 0 && !found[k])
      findings.add("weight `%s` is missing", p.info->constants[k].name);
}

template <class T> void write_piece(const Run &run, const Piece &piece, const T *from, char *to) {
  const int64_t *n = piece.numbers;
  f32 *packed = (f32 *)to;
  if (piece.form == kProduct) pack_product(run, from + n[0], n[1], n[2], n[3], n[4], packed);
  if constexpr (sizeof(T) == 2)
    if (piece.form == kNarrowProduct) pack_narrow(run, from + n[0], n[1], n[2], n[3], n[4], (u16 *)to);
  if (piece.form == kConv) pack_conv(run, from, n[0], n[1], n[2], packed);
  if (piece.form == kConvTransposed) pack_conv_transposed(run, from, n[0], n[1], n[2], packed);
  if (piece.form == kTapPanels) pack_tap_panels(run, from, n[0], n[1], n[2], n[3], packed);
  if (piece.form == kByTap) pack_by_tap(run, from, n[0], n[1], n[2], (T *)to);
}
// The forms that products of bytes read, of numbers of so many bytes.
inline void write_words(const Run &run, const Piece &piece, const u8 *from, i64 size, i32 *to) {
  const int64_t *n = piece.numbers;
  if (piece.form == kProductWords)
    pack_product_words(run, from + n[0] * size, n[1] * size, n[2] * size, n[3], n[4], to);
  else
    pack_tap_words(run, from, size, n[0], n[1], n[2], n[3], to);
}
// The form that depthwise convolutions of bytes read: the lowest byte of each of such numbers, as a float.
inline void write_bytes(const Run &run, const Piece &piece, const i8 *from, i64 size, f32 *to) {
  const int64_t *n = piece.numbers;
  if (piece.form == kProduct) pack_product(run, from + n[0] * size, n[1] * size, n[2] * size, n[3], n[4], to);
  if (piece.form == kNarrowProduct) pack_narrow(run, from + n[0] * size, n[1] * size, n[2] * size, n[3], n[4], (u8 *)to);
}
// The forms that products of f64 read.
template <class S> void write_doubles(const Run &run, const Piece &piece, const S *from, S *to) {
  const int64_t *n = piece.numbers;
  if (piece.form == kProduct) pack_product(run, from + n[0], n[1], n[2], n[3], n[4], to);
}

// Writes one piece, and zeros up to where the next may start. Code for numbers of f64 is there only for those who have some.
template <bool Doubles> void write_piece(const Run &run, const Piece &piece, const void *from, char *weights) {
  char *to = weights + piece.offset;
  if (piece.form == kPlain || piece.source == kFixed) {
    constexpr int64_t block = 1 << 20;
    parallel(run, ceil_div(piece.bytes, block), 1, [&](i64 begin, i64 end, i64) {
      const int64_t last = min_i64(end * block, piece.bytes);
      if (last > begin * block) memcpy(to + begin * block, (const char *)from + begin * block, size_t(last - begin * block));
    });
  } else if (piece.form == kProductWords || piece.form == kTapWords) {
    write_words(run, piece, (const u8 *)from, dtype_bytes(piece.dtype), (i32 *)to);
  } else if (piece.dtype == AOTI_F16) {
    write_piece(run, piece, (const f16 *)from, to);
  } else if (piece.dtype == AOTI_BF16) {
    write_piece(run, piece, (const bf16 *)from, to);
  } else if (Doubles && piece.dtype == AOTI_F64) {
    if constexpr (Doubles) write_doubles(run, piece, (const f64 *)from, (f64 *)to);
  } else if (piece.dtype == AOTI_F32) {
    write_piece(run, piece, (const f32 *)from, to);
  } else {
    write_bytes(run, piece, (const i8 *)from, dtype_bytes(piece.dtype), (f32 *)to);
  }
  memset(to + piece.bytes, 0, size_t(aligned(piece.bytes) - piece.bytes));
}

inline int32_t check_room(const char *what, const void *memory, int64_t bytes, int64_t needed, int32_t code,
                          AotiError *error) {
  if (bytes < needed)
    return fail(error, code, "the %s has %lld bytes, must have %lld", what, (long long)bytes, (long long)needed);
  if (needed > 0 && !memory) return fail(error, AOTI_ERROR_NULL, "the %s is null", what);
  if (uintptr_t(memory) % AOTI_ALIGNMENT != 0)
    return fail(error, AOTI_ERROR_ALIGNMENT, "the %s is not aligned to %d bytes", what, AOTI_ALIGNMENT);
  return AOTI_OK;
}

// The entries of a model's table that make weights.
template <const Preparation &P> struct Prepare {
  static int64_t bytes(int32_t threads) {
    const int64_t no_symbols[1] = {};
    return pointer_bytes(P) + P.output_bytes + aligned(P.arena_bytes) +
           P.scratch_bytes(no_symbols, threads > 1 ? threads : 1);
  }

  static int32_t weights(const AotiNamedTensor *tensors, int32_t n, void *weights, int64_t weights_bytes,
                         void *workspace, int64_t workspace_bytes, const AotiPrepareOptions *options,
                         AotiError *error) {
    const AotiContext context = complete(options ? options->context : nullptr);
    if (n > 0 && !tensors) return fail(error, AOTI_ERROR_NULL, "the tensors are null");
    if (int32_t code = check_room("place for the weights", weights, weights_bytes, P.info->weights_bytes,
                                  AOTI_ERROR_WEIGHTS, error))
      return code;
    if (int32_t code = check_room("workspace", workspace, workspace_bytes, bytes(context.threads),
                                  AOTI_ERROR_WORKSPACE, error))
      return code;
    const void **found = (const void **)workspace, **inputs = found + P.info->n_constants;
    void **outputs = (void **)(inputs + P.n_inputs);
    char *computed = (char *)workspace + pointer_bytes(P), *arena = computed + P.output_bytes;
    if (workspace) memset(workspace, 0, size_t(pointer_bytes(P)));
    Findings findings = {options, {}, 0};
    find_weights(P, tensors, n, found, findings);
    if (findings.count > 1)
      return fail(error, AOTI_ERROR_WEIGHTS, "%.200s (and %lld more)", findings.first.message,
                  (long long)findings.count - 1);
    if (findings.count == 1) return fail(error, AOTI_ERROR_WEIGHTS, "%s", findings.first.message);
    for (int32_t i = 0; i < P.n_inputs; ++i) inputs[i] = found[P.inputs[i]];
    for (int32_t i = 0; i < P.n_outputs; ++i) outputs[i] = computed + P.outputs[i];
    Fault fault = {};
    int64_t no_symbols[1] = {};
    const Run run{&context, inputs, outputs, nullptr, P.fixed, nullptr, arena, arena + aligned(P.arena_bytes),
                  &fault,   no_symbols, nullptr};
    P.run(run);
    if (fault.site > 0)
      return fail(error, AOTI_ERROR_INDEX, "weights hold index %lld, which is outside %lld..=%lld in %s",
                  (long long)fault.index, (long long)(fault.wraps ? -fault.size : 0), (long long)fault.size - 1,
                  P.sites[fault.site - 1]);
    write_pieces(run, (char *)weights, options);
    return succeed(error);
  }

  static void write_pieces(const Run &run, char *weights, const AotiPrepareOptions *options) {
    int64_t done = 0, total = 0;
    for (int32_t i = 0; i < P.n_pieces; ++i) total += P.pieces[i].bytes;
    for (int32_t i = 0; i < P.n_pieces; ++i) {
      const Piece &piece = P.pieces[i];
      const void *from = piece.source == kGiven      ? run.inputs[piece.position]
                         : piece.source == kComputed ? run.outputs[piece.position]
                                                     : P.fixed + piece.position;
      write_piece<P.packs_doubles>(run, piece, from, weights);
      done += piece.bytes;
      if (options && options->progress) options->progress(options->arg, done, total);
    }
  }
};

} // namespace
} // namespace aoti
