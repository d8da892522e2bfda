// Rows of which neighbours lie side by side in memory, and the elements of each far apart: the pixels of planes of channels, for
// kernels that take a pixel at a time. A block of rows is turned at once, so that each cache line is met once: the lines of a row
// may share a set, and would be gone before the next row needs them.
#pragma once

#include "tile.h"

AOTI_NAMESPACE_BEGIN

namespace detail {

// to[row * to_step + i] = from[i * from_step + row], for `count` elements of each of so many rows.
AOTI_NOINLINE void turn_block(const f32 *from, i64 from_step, i64 rows, i64 count, f32 *to, i64 to_step) {
  const i64 whole_rows = rows / 4 * 4, whole = count / 4 * 4;
  for (i64 i = 0; i < whole; i += 4) {
    for (i64 r = 0; r < whole_rows; r += 4) transpose_4x4(from + i * from_step + r, from_step, to + r * to_step + i, to_step);
    for (i64 r = whole_rows; r < rows; ++r)
      for (i64 k = i; k < i + 4; ++k) to[r * to_step + k] = from[k * from_step + r];
  }
  for (i64 i = whole; i < count; ++i)
    for (i64 r = 0; r < rows; ++r) to[r * to_step + i] = from[i * from_step + r];
}

} // namespace detail

// So many elements of each row, in a block of rows.
template <i64 Count> struct TurnedRows {
  // A cache line of rows.
  static constexpr i64 rows = 16, pitch = round_up(Count, i64(kLanes));
  alignas(64) f32 block[rows * pitch];
  u64 first = 0;
  i64 used = 0;

  // The row whose first element is at p, if it is in the block; else null.
  AOTI_INLINE f32 *find(const f32 *p) {
    const i64 row = i64((u64)p - first) / i64(sizeof(f32));
    return (u64)p >= first && row < used ? block + row * pitch : nullptr;
  }
};

// Rows that are read.
template <i64 Count> struct TurnedLoads : TurnedRows<Count> {
  // The row that begins at p, with elements `step` apart; `left` rows, this one included, are read from here on.
  AOTI_INLINE const f32 *row(const f32 *p, i64 step, i64 left) {
    if (const f32 *found = this->find(p)) return found;
    this->first = (u64)p, this->used = min_i64(left, this->rows);
    detail::turn_block(p, step, this->used, Count, this->block, this->pitch);
    return this->block;
  }
};

// Rows that are written, and leave the block when all are complete.
template <i64 Count> struct TurnedStores : TurnedRows<Count> {
  f32 *to = nullptr;
  i64 to_step = 0;

  AOTI_INLINE f32 *row(f32 *p, i64 step, i64 left) {
    if (f32 *found = this->find(p)) return found;
    leave();
    to = p, to_step = step;
    this->first = (u64)p, this->used = min_i64(left, this->rows);
    return this->block;
  }
  AOTI_INLINE void leave() {
    // One line after the other, whole.
    for (i64 i = 0; i < Count; i += 4)
      detail::turn_block(this->block + i, this->pitch, min_i64(4, Count - i), this->used, to + i * to_step, to_step);
  }
  AOTI_INLINE ~TurnedStores() { leave(); }
};

AOTI_NAMESPACE_END
