// Pixels whose channels are planes, written with their channels last.
#pragma once

#include "conv.h"

AOTI_NAMESPACE_BEGIN

namespace detail {

// The vector at `Part` of kLanes pixels of three channels side by side.
template <int Part, int... I>
AOTI_INLINE TileVector three_channels(TileVector a, TileVector b, TileVector c, Indices<I...>) {
  constexpr int first = Part * kLanes;
  // Where the third channel comes, anything does at first.
  const TileVector two = shuffled<((first + I) % 3 == 1 ? kLanes + (first + I) / 3 : (first + I) / 3)...>(a, b);
  return shuffled<((first + I) % 3 == 2 ? kLanes + (first + I) / 3 : I)...>(two, c);
}

// `count` pixels of three planes that are `plane` floats apart, as pictures have them, channels last, pixels `pitch` floats apart.
AOTI_NOINLINE void interleave_three(const f32 *x, i64 plane, i64 pitch, i64 count, f32 *to) {
  i64 done = 0;
  for (; pitch == 3 && done + kLanes <= count; done += kLanes) {
    const TileVector a = load_tile_vector(x + done), b = load_tile_vector(x + plane + done);
    const TileVector c = load_tile_vector(x + 2 * plane + done);
    store_tile_vector(to + 3 * done, three_channels<0>(a, b, c, indices<kLanes>{}));
    store_tile_vector(to + 3 * done + kLanes, three_channels<1>(a, b, c, indices<kLanes>{}));
    store_tile_vector(to + 3 * done + 2 * kLanes, three_channels<2>(a, b, c, indices<kLanes>{}));
  }
  for (; done < count; ++done)
    for (i64 c = 0; c < 3; ++c) to[done * pitch + c] = x[c * plane + done];
}

// The same of `channels` planes.
AOTI_NOINLINE void interleave_channels(const f32 *x, i64 plane, i64 channels, i64 pitch, i64 count, f32 *to) {
  // Four pixels of four channels at a time, the last channel in place of those that are missing, and never the last pixels, as
  // vectors of the last channels reach up to three floats into the next ones. These channels come first: what they write
  // there is then written over.
  const i64 last = channels - 1, fours = channels > 0 && count >= 7 ? (count - 3) / 4 * 4 : 0;
  i64 done = 0;
  while (done < fours) {
    // Of each plane a cache line at a time: planes may be so far apart that their lines share a set.
    const i64 end = min_i64(done + 16, fours);
    for (i64 c = last / 4 * 4; c >= 0; c -= 4)
      for (i64 i = done; i < end; i += 4) {
        f32 four[4][4];
        AOTI_UNROLL for (i64 k = 0; k < 4; ++k)
          *(FourFloats *)four[k] = *(const FourFloats *)(x + min_i64(c + k, last) * plane + i);
        transpose_4x4(four[0], 4, to + i * pitch + c, pitch);
      }
    done = end;
  }
  for (; done < count; ++done)
    for (i64 c = 0; c < channels; ++c) to[done * pitch + c] = x[c * plane + done];
}

} // namespace detail

AOTI_NAMESPACE_END
