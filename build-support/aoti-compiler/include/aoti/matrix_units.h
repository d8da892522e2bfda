// Matrix units of processors: sums of products of bf16 numbers, tile by tile. On x86-64 they are AMX's, which a processor
// of the level with AVX-512 may have or not: a run asks (`has_matrix_units`).
//
// An f32 number is the sum of three bf16 numbers, its planes: the nearest one, the nearest one to the rest, and what is left
// then. Of the nine products of planes the six largest are added up, the small ones first; the others are below 2^-26 of the
// product (as for halves on GPUs: Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores", 2022). An f16
// number has two planes, a bf16 number is its own one.
//
// Units read numbers below 2^-126 as zero, and what rounds to an infinity has no planes: `unit_sums_hold` finds sums that
// either may have spoiled, for the caller to add them up in another way.
//
// Tiles: left[tile][block][plane][16 rows][32 of depth], right[block][plane][2][16 pairs of depth][16 columns][2],
// sums[16 * tiles][kPanel].
#pragma once

#include "memory.h"
#include "tile.h"

#if AOTI_AVX512 && (defined(AOTI_UNITS_EMULATED) || (defined(__x86_64__) && defined(__linux__)))
#define AOTI_UNITS 1
#else
#define AOTI_UNITS 0
#endif

AOTI_NAMESPACE_BEGIN

// Rows of a tile, and what its rows hold of the depth.
constexpr i64 kUnitRows = 16;
constexpr i64 kUnitDepth = 32;
// Planes of a number.
template <class T> constexpr int kPlanes = is_same<T, bf16> ? 1 : is_same<T, f16> ? 2 : 3;

namespace detail {

// Elements of one plane of a tile of the left operand, and of a panel of the right one.
constexpr i64 kLeftTile = kUnitRows * kUnitDepth;
constexpr i64 kRightTile = kUnitDepth * kPanel;
// Blocks of the depth whose right operand stays in the first-level cache while rows go past.
constexpr i64 kUnitBlocks = 4;

#if AOTI_UNITS

// --- the instructions ---

#if defined(AOTI_UNITS_EMULATED)

AOTI_NOINLINE bool find_matrix_units() { return true; }

// Registers as the instructions see them: 0 to 3 sums, 4 to 7 operands.
struct EmulatedTiles {
  f32 sums[4][kUnitRows][16];
  u16 operands[4][kUnitRows][kUnitDepth];
};
static thread_local EmulatedTiles emulated;

struct UnitsInUse {};
AOTI_INLINE void zero_tile(int tile) { __builtin_memset(emulated.sums[tile], 0, sizeof emulated.sums[tile]); }
AOTI_INLINE void load_sums(int tile, const f32 *from) {
  for (i64 r = 0; r < kUnitRows; ++r) __builtin_memcpy(emulated.sums[tile][r], from + r * kPanel, 64);
}
AOTI_INLINE void store_sums(int tile, f32 *to) {
  for (i64 r = 0; r < kUnitRows; ++r) __builtin_memcpy(to + r * kPanel, emulated.sums[tile][r], 64);
}
AOTI_INLINE void load_operand(int tile, const u16 *from) { __builtin_memcpy(emulated.operands[tile - 4], from, 1024); }
AOTI_NOINLINE void add_products(int sums, int left, int right) {
  for (i64 r = 0; r < kUnitRows; ++r)
    for (i64 k = 0; k < kUnitDepth; ++k)
      for (i64 c = 0; c < 16; ++c) {
        const f32 a = to_f32(bf16{emulated.operands[left - 4][r][k]});
        const f32 b = to_f32(bf16{emulated.operands[right - 4][k / 2][2 * c + k % 2]});
        emulated.sums[sums][r][c] += a * b;
      }
}
#define AOTI_ZERO_TILE(TILE) zero_tile(TILE)
#define AOTI_LOAD_SUMS(TILE, FROM) load_sums(TILE, FROM)
#define AOTI_STORE_SUMS(TILE, TO) store_sums(TILE, TO)
#define AOTI_LOAD_OPERAND(TILE, FROM) load_operand(TILE, FROM)
#define AOTI_ADD_PRODUCTS(SUMS, LEFT, RIGHT) add_products(SUMS, LEFT, RIGHT)

#else

// Whether the processor has tiles and products of bf16, the system keeps them for each thread, and lets this process use them.
AOTI_NOINLINE bool find_matrix_units() {
  constexpr u32 kProductsOfBf16 = 1 << 22, kTiles = 1 << 24, kKeptBySystem = 1 << 27, kTileState = 3 << 17;
  u32 a = 1, b, c = 0, d;
  asm volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  if (!(c & kKeptBySystem)) return false;
  a = 7, c = 0;
  asm volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  if (!(d & kProductsOfBf16) || !(d & kTiles)) return false;
  asm volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  if ((a & kTileState) != kTileState) return false;
  // arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA): Linux asks for this once in each process.
  i64 result = 158;
  asm volatile("syscall" : "+a"(result) : "D"(i64(0x1023)), "S"(i64(18)) : "rcx", "r11", "memory");
  return result == 0;
}

// All tiles of 16 rows of 64 bytes, while this lives.
struct UnitsInUse {
  UnitsInUse() {
    struct alignas(64) {
      u8 palette, first_row, reserved[14];
      u16 row_bytes[16];
      u8 rows[16];
    } shape = {};
    shape.palette = 1;
    for (int tile = 0; tile < 8; ++tile) shape.row_bytes[tile] = 64, shape.rows[tile] = kUnitRows;
    asm volatile("ldtilecfg %0" : : "m"(shape));
  }
  ~UnitsInUse() { asm volatile("tilerelease"); }
};
#define AOTI_ZERO_TILE(TILE) asm volatile("tilezero %%tmm" #TILE : :)
#define AOTI_LOAD_SUMS(TILE, FROM) \
  asm volatile("tileloadd (%0,%1,1), %%tmm" #TILE : : "r"((const f32 *)(FROM)), "r"(kPanel * i64(4)) : "memory")
#define AOTI_STORE_SUMS(TILE, TO) \
  asm volatile("tilestored %%tmm" #TILE ", (%0,%1,1)" : : "r"((f32 *)(TO)), "r"(kPanel * i64(4)) : "memory")
#define AOTI_LOAD_OPERAND(TILE, FROM) \
  asm volatile("tileloadd (%0,%1,1), %%tmm" #TILE : : "r"((const u16 *)(FROM)), "r"(kUnitDepth * i64(2)) : "memory")
#define AOTI_ADD_PRODUCTS(SUMS, LEFT, RIGHT) asm volatile("tdpbf16ps %%tmm" #RIGHT ", %%tmm" #LEFT ", %%tmm" #SUMS : :)

#endif

// --- planes ---

typedef f32 UnitFloats __attribute__((vector_size(64)));
typedef f32 UnalignedUnitFloats __attribute__((vector_size(64), aligned(4), may_alias));
typedef u32 UnitWords __attribute__((vector_size(64)));
typedef u16 UnitHalves __attribute__((vector_size(64)));
typedef u16 UnalignedUnitHalves __attribute__((vector_size(64), aligned(2), may_alias));

// The upper halves of two vectors of words: those of the first before those of the second, or each pair side by side.
template <bool Pairs, int... I> AOTI_INLINE UnitHalves upper_halves(Indices<I...>, UnitWords x, UnitWords y) {
  return shuffled<(Pairs ? I % 2 * 32 + I / 2 * 2 + 1 : 2 * I + 1)...>((UnitHalves)x, (UnitHalves)y);
}

// The planes of two vectors, `step` elements apart.
template <int Planes, bool Pairs> AOTI_INLINE void put_planes(UnitFloats x, UnitFloats y, u16 *to, i64 step) {
  const UnitWords half = UnitWords{} + 0x8000u, upper = UnitWords{} + 0xffff0000u;
  AOTI_UNROLL for (int plane = 0; plane < Planes; ++plane, to += step) {
    UnitWords a = (UnitWords)x, b = (UnitWords)y;
    // What is left of a number after all other planes fits.
    if (plane + 1 < Planes) {
      a += half, b += half;
      x -= (UnitFloats)(a & upper), y -= (UnitFloats)(b & upper);
    }
    *(UnalignedUnitHalves *)to = upper_halves<Pairs>(indices<32>{}, a, b);
  }
}

AOTI_INLINE UnitFloats unit_floats(const f32 *from) { return *(const UnalignedUnitFloats *)from; }
// Elements of a half type, widened.
template <class W> AOTI_INLINE UnitFloats unit_floats(const W *from) {
#if AOTI_AVX512
  return Element<W>::decode(load_raw(Full<16>{}, (const typename Element<W>::Raw *)from)).v;
#else
  f32 wide[16];
  for (int i = 0; i < 16; ++i) wide[i] = to_f32(from[i]);
  return unit_floats(wide);
#endif
}

// The planes of `rows` rows of `k` floats, which are `stride` apart; rows of the last tile and depth of the last block that are
// missing are zero.
template <int Planes> AOTI_NOINLINE void split_rows(const f32 *a, i64 stride, i64 rows, i64 k, u16 *to) {
  const i64 blocks = ceil_div(k, kUnitDepth);
  for (i64 r = 0; r < round_up(rows, kUnitRows); ++r) {
    u16 *tile = to + (r / kUnitRows * blocks * Planes * kUnitRows + r % kUnitRows) * kUnitDepth;
    for (i64 i = 0; i < blocks; ++i, tile += Planes * kLeftTile) {
      f32 rest[kUnitDepth] = {};
      const f32 *from = a + r * stride + i * kUnitDepth;
      const i64 count = r < rows ? min_i64(k - i * kUnitDepth, kUnitDepth) : 0;
      if (count < kUnitDepth) copy_floats(rest, from, count), from = rest;
      put_planes<Planes, false>(unit_floats(from), unit_floats(from + 16), tile, kLeftTile);
    }
  }
}

// The planes of a packed panel of `k` rows.
template <int Planes, class W> AOTI_NOINLINE void split_panel(const W *panel, i64 k, u16 *to) {
  for (i64 i = 0; i < round_up(k, kUnitDepth); i += 2) {
    u16 *pair = to + (i / kUnitDepth * Planes * kUnitDepth + i % kUnitDepth / 2) * kPanel;
    for (i64 c = 0; c < kPanel; c += 16) {
      const W *from = panel + i * kPanel + c;
      const UnitFloats x = i < k ? unit_floats(from) : UnitFloats{};
      const UnitFloats y = i + 1 < k ? unit_floats(from + kPanel) : UnitFloats{};
      put_planes<Planes, true>(x, y, pair + c / 16 * kLeftTile, kRightTile);
    }
  }
}

// --- products ---

// A block of the depth: `Tiles` tiles of rows, `other` elements apart.
template <int Planes, int Tiles> AOTI_INLINE void add_block(const u16 *a, i64 other, const u16 *b) {
  const auto left = [&](i64 plane) AOTI_LAMBDA {
    AOTI_LOAD_OPERAND(4, a + plane * kLeftTile);
    if constexpr (Tiles > 1) AOTI_LOAD_OPERAND(5, a + other + plane * kLeftTile);
  };
  const auto right = [&](i64 plane) AOTI_LAMBDA {
    AOTI_LOAD_OPERAND(6, b + plane * kRightTile);
    AOTI_LOAD_OPERAND(7, b + plane * kRightTile + kLeftTile);
  };
  const auto add = [&]() AOTI_LAMBDA {
    AOTI_ADD_PRODUCTS(0, 4, 6);
    AOTI_ADD_PRODUCTS(1, 4, 7);
    if constexpr (Tiles > 1) {
      AOTI_ADD_PRODUCTS(2, 5, 6);
      AOTI_ADD_PRODUCTS(3, 5, 7);
    }
  };
  if constexpr (Planes == 1) {
    right(0), left(0), add();
  } else if constexpr (Planes == 2) {
    right(1), left(1), add(), left(0), add();
    right(0), left(1), add(), left(0), add();
  } else {
    right(0), left(2), add(), left(1), add();
    right(1), add(), left(0), add();
    right(2), add();
    right(0), add();
  }
}

// Blocks of the depth for `Tiles` tiles of rows: sums are theirs, or are added to.
template <int Planes, int Tiles>
AOTI_NOINLINE void add_blocks(i64 blocks, const u16 *a, i64 other, const u16 *b, bool add, f32 *sums) {
  f32 *const below = sums + kUnitRows * kPanel;
  if (add) {
    AOTI_LOAD_SUMS(0, sums);
    AOTI_LOAD_SUMS(1, sums + 16);
    if constexpr (Tiles > 1) {
      AOTI_LOAD_SUMS(2, below);
      AOTI_LOAD_SUMS(3, below + 16);
    }
  } else {
    AOTI_ZERO_TILE(0);
    AOTI_ZERO_TILE(1);
    if constexpr (Tiles > 1) {
      AOTI_ZERO_TILE(2);
      AOTI_ZERO_TILE(3);
    }
  }
  for (i64 i = 0; i < blocks; ++i, a += Planes * kLeftTile, b += Planes * kRightTile)
    add_block<Planes, Tiles>(a, other, b);
  AOTI_STORE_SUMS(0, sums);
  AOTI_STORE_SUMS(1, sums + 16);
  if constexpr (Tiles > 1) {
    AOTI_STORE_SUMS(2, below);
    AOTI_STORE_SUMS(3, below + 16);
  }
}

// sums = left * right, for `tiles` tiles of rows. `chain`: as large as the sums, for depths of several chains.
template <int Planes>
AOTI_NOINLINE void unit_products(i64 tiles, i64 k, const u16 *left, const u16 *right, f32 *sums, f32 *chain) {
  UnitsInUse units;
  (void)units;
  const i64 blocks = ceil_div(k, kUnitDepth), of_tile = blocks * Planes * kLeftTile;
  for (i64 first = 0; first < blocks; first += kChain / kUnitDepth) {
    f32 *const to = first == 0 ? sums : chain;
    const i64 last = min_i64(first + kChain / kUnitDepth, blocks);
    for (i64 i = first; i < last; i += kUnitBlocks) {
      const i64 count = min_i64(kUnitBlocks, last - i);
      const u16 *a = left + i * Planes * kLeftTile, *b = right + i * Planes * kRightTile;
      i64 t = 0;
      for (; t + 2 <= tiles; t += 2)
        add_blocks<Planes, 2>(count, a + t * of_tile, of_tile, b, i > first, to + t * kUnitRows * kPanel);
      if (t < tiles) add_blocks<Planes, 1>(count, a + t * of_tile, 0, b, i > first, to + t * kUnitRows * kPanel);
    }
    if (first > 0) add_chain(sums, chain, int(tiles * kUnitRows), kPanel, kPanel);
  }
}

// Whether the sums of these rows are what ordinary instructions would give but for rounding: all are finite, and none of the
// rows has nothing but sums so small that planes below 2^-126 might count.
AOTI_NOINLINE bool unit_sums_hold(const f32 *sums, i64 rows) {
  typedef i32 Bits __attribute__((vector_size(64), may_alias));
  constexpr i32 kInfinity = 0x7f800000, kSmall = (127 - 64) << 23;
  Bits highest{}, least = Bits{} + kInfinity;
  for (i64 r = 0; r < rows; ++r, sums += kPanel) {
    const Bits x = *(const Bits *)sums & 0x7fffffff, y = *(const Bits *)(sums + 16) & 0x7fffffff;
    const Bits row = x > y ? x : y;
    highest = highest > row ? highest : row;
    least = least < row ? least : row;
  }
  // A column whose sums are all large enough vouches for each of the rows.
  bool some = false, finite = true;
  for (int i = 0; i < 16; ++i) some |= least[i] >= kSmall, finite &= highest[i] < kInfinity;
  return some && finite;
}

#endif

} // namespace detail

// Whether products of many rows run on matrix units on this machine.
AOTI_INLINE bool has_matrix_units() {
#if AOTI_UNITS
  // Asked once, by as many threads as come before there is an answer.
  enum { kUnknown, kNo, kYes };
  static int known = kUnknown;
  int state = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (state == kUnknown) {
    state = detail::find_matrix_units() ? kYes : kNo;
    __atomic_store_n(&known, state, __ATOMIC_RELAXED);
  }
  return state == kYes;
#else
  return false;
#endif
}

AOTI_NAMESPACE_END
