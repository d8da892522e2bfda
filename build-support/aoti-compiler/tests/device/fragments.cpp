// Elements of fragments by lane, as AMD's documents list them, against the data of fragments.h.
#include "aoti/gpu/fragments.h"

using namespace aoti::detail;

// V_MFMA_F32_16X16X16_F16: 64 lanes, of A and B four depths each.
static_assert(kMfmaLayout.group(15) == 0 && kMfmaLayout.group(16) == 1 && kMfmaLayout.group(63) == 3);
static_assert(kMfmaLayout.row(0, 0) == 0 && kMfmaLayout.row(5, 3) == 3 && kMfmaLayout.row(16, 0) == 4 && kMfmaLayout.row(63, 3) == 15);
// V_WMMA_F32_16X16X16_F16 of RDNA3: lanes 16 to 31 repeat A and B, and have odd rows of D.
static_assert(kWmmaLayout.group(0) == 0 && kWmmaLayout.group(31) == 0);
static_assert(kWmmaLayout.row(0, 0) == 0 && kWmmaLayout.row(15, 7) == 14 && kWmmaLayout.row(16, 0) == 1 && kWmmaLayout.row(31, 7) == 15);
// The same of RDNA4: lanes 16 to 31 have the other depths, and rows 8 to 15 of D.
static_assert(kWmma12Layout.group(15) == 0 && kWmma12Layout.group(16) == 1);
static_assert(kWmma12Layout.row(0, 0) == 0 && kWmma12Layout.row(15, 7) == 7 && kWmma12Layout.row(16, 0) == 8 && kWmma12Layout.row(31, 7) == 15);

// Every layout has each element of D once.
constexpr bool is_whole(const FragmentLayout &layout) {
  int seen[16][16] = {};
  for (int lane = 0; lane < layout.lanes; ++lane)
    for (int e = 0; e < layout.sums; ++e) ++seen[layout.row(lane, e)][lane % 16];
  for (auto &row : seen)
    for (int count : row)
      if (count != 1) return false;
  return true;
}
static_assert(is_whole(kMfmaLayout) && is_whole(kWmmaLayout) && is_whole(kWmma12Layout));
