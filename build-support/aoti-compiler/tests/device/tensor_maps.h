// Maps of tensors for the copy engine, as the emulated driver makes them.
// Maps are not used by emulated kernels. What they say must be what the copy engine takes.
int cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *address, const uint64_t *sizes, const uint64_t *strides,
                           const unsigned *box, const unsigned *steps, int, int, int, int) {
  if ((type != 1 && type != 2) || rank < 2 || rank > 5 || (uint64_t)address % 16 || box[0] * (type == 1 ? 2 : 4) != 128 || (uint64_t)map % 64) return 1;
  for (unsigned d = 0; d < rank; ++d)
    if (!sizes[d] || !box[d] || box[d] > 256 || steps[d] != 1 || (d > 0 && strides[d - 1] % 16)) return 1;
  memset(map, 0x5a, 128);
  return 0;
}
int cuTensorMapEncodeIm2col(void *map, int type, unsigned rank, void *address, const uint64_t *sizes, const uint64_t *strides,
                            const int *lower, const int *upper, unsigned channels, unsigned pixels, const unsigned *steps, int, int,
                            int, int) {
  if ((type != 1 && type != 2) || rank < 3 || rank > 5 || (uint64_t)address % 16 || (uint64_t)map % 64) return 1;
  if (channels * (type == 1 ? 2 : 4) != 128 || !pixels || pixels > 1024) return 1;
  for (unsigned d = 0; d < rank; ++d)
    if (!sizes[d] || !steps[d] || steps[d] > 8 || (d > 0 && strides[d - 1] % 16)) return 1;
  const int near = rank == 3 ? 32768 : rank == 4 ? 128 : 16;
  for (unsigned d = 0; d < rank - 2; ++d)
    if (lower[d] < -near || lower[d] >= near || upper[d] < -near || upper[d] >= near) return 1;
  memset(map, 0x5a, 128);
  return 0;
}
