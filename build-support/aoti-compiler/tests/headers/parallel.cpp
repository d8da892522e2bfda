// Checks how loops are shared: into how many parts, and that these cover everything once.
#include "aoti/run.h"

#include "check.h"

using namespace aoti;

static int64_t parts = 0;

static void backwards(void *, int64_t n, AotiParallelBody body, void *arg) {
  parts = n;
  for (int64_t i = n; i-- > 0;) body(arg, i, i + 1, int32_t(i % 2));
}

// Parts of so many units, `enough` of which are worth a thread.
static int64_t shared(int32_t threads, int32_t fork_join_ns, i64 n, i64 enough) {
  AotiContext context = {};
  context.parallel_for = backwards, context.threads = threads, context.fork_join_ns = fork_join_ns;
  Run run = {};
  run.context = &context;
  Collected seen(n);
  parts = 1;
  parallel(run, n, grain(run, enough, 1), [&](i64 begin, i64 end, i64) {
    for (i64 i = begin; i < end; ++i) ++seen.times[i];
  });
  for (int64_t i = 0; i < n; ++i)
    if (seen.times[i] != 1) CHECK_FAIL("%lld of %lld is done %d times", (long long)i, (long long)n, seen.times[i]);
  return parts;
}

static void expect(int64_t found, int64_t expected) {
  ++check_cases;
  if (found != expected) CHECK_FAIL("case %d: %lld parts, not %lld", check_cases, (long long)found, (long long)expected);
}

int main() {
  const i64 n[] = {50, 190, 200, 300, 700, 800, 1200, 1600, 2300, 2400, 10000};
  const int64_t of_two[] = {1, 1, 2, 2, 2, 2, 2, 4, 4, 6, 8};
  for (int i = 0; i < 11; ++i) expect(shared(2, kForkJoin, n[i], 100), of_two[i]);
  expect(shared(1, kForkJoin, 10000, 100), 1);
  expect(shared(3, kForkJoin, 2000, 100), 3);

  // Less is worth a thread where threads are near.
  const int32_t fork_join_ns[] = {kForkJoin, kForkJoin / 2, kForkJoin / 4, kForkJoin / 16, 8, kForkJoin * 4, kMostForkJoin};
  const int64_t of_four[] = {1, 1, 3, 4, 16, 1, 1};
  for (int i = 0; i < 7; ++i) expect(shared(4, fork_join_ns[i], 4000, 4096), of_four[i]);

  // One unit that is worth a thread is, whatever that takes.
  AotiContext context = {};
  context.threads = 2, context.fork_join_ns = kMostForkJoin;
  Run run = {};
  run.context = &context;
  expect(grain(run, 65536, i64(1) << 40), 1);
  expect(grain_of(run, 65536, 1 << 20, i64(1) << 50), 1);

  // Of loops over elements no less is.
  context.fork_join_ns = kForkJoin / 4;
  expect(grain(run, 4096, 8), 128);
  expect(loop_grain(run, 4096, 8), 512);
  context.fork_join_ns = kForkJoin * 4;
  expect(loop_grain(run, 4096, 8), 2048);
  return check_end();
}
