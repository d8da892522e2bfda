// How long kernels take on a device: launches between events of their stream.
//
// While the host launches slower than kernels run, an event before a kernel would be reached long before the kernel comes. So
// the stream is held until a number of launches have been given to it, and then goes through them without a gap.
#pragma once

#include "driver.h"
#include <time.h>

namespace aoti {
namespace gpu {

struct Timing {
  // Launches that are held at one time: less than streams take in before they make the host wait.
  static constexpr int kMost = 64;
  // A driver that has to wait for the stream before it can launch, as when it loads code, is not held for longer.
  static constexpr int64_t kLongestHold = 100'000'000;

  const Driver &driver;
  void (*tell)(void *, int32_t kernel, double microseconds);
  void *arg;
  int32_t first_kernel;
  Event events[kMost + 1] = {}; // before the first of the launches, and after each
  int32_t kernels[kMost] = {};
  int count = 0;
  bool holds = false, is_open = false;

  Timing(const Driver &driver, void (*tell)(void *, int32_t, double), void *arg, int32_t first_kernel)
      : driver(driver), tell(tell), arg(arg), first_kernel(first_kernel) {}
  Timing(const Timing &) = delete;
  ~Timing() {
    report();
    for (Event event : events)
      if (event) driver.event_destroy(event);
  }

  // Gives the driver's code, as all that follow do.
  int make_events() {
    int code = 0;
    for (int i = 0; i <= kMost && !code; ++i)
      if ((code = driver.event_create(&events[i], kEventTiming))) events[i] = nullptr;
    return code;
  }

  // Before a launch.
  int begin(Stream stream) {
    if (holds) return 0;
    __atomic_store_n(&is_open, false, __ATOMIC_RELAXED);
    // Where the driver cannot hold it, times include what the host takes to launch.
    if (driver.call_host)
      if (int code = driver.call_host(stream, hold, this)) return code;
    holds = true;
    return driver.event_record(events[0], stream);
  }

  // After it. A launch that does not begin its kernel goes on with the one before it, unless that has been told.
  int end(int32_t kernel, bool begins, Stream stream) {
    if (!begins && count > 0 && kernels[count - 1] == first_kernel + kernel) --count;
    kernels[count++] = first_kernel + kernel;
    const int code = driver.event_record(events[count], stream);
    if (code) --count;
    return count == kMost && !code ? report() : code;
  }

  // Lets the stream go on, waits for what was launched, and tells the times.
  int report() {
    if (!holds) return 0;
    __atomic_store_n(&is_open, true, __ATOMIC_RELEASE);
    holds = false;
    const int n = count;
    count = 0;
    if (int code = driver.event_wait(events[n])) return code;
    for (int i = 0; i < n; ++i) {
      float milliseconds = 0;
      if (int code = driver.event_elapsed(&milliseconds, events[i], events[i + 1])) return code;
      tell(arg, kernels[i], double(milliseconds) * 1e3);
    }
    return 0;
  }

private:
  // What the stream comes to before the launches, on a thread of the driver's.
  static void hold(void *own) {
    const Timing &timing = *(const Timing *)own;
    timespec begun, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    do {
      if (__atomic_load_n(&timing.is_open, __ATOMIC_ACQUIRE)) return;
      clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begun.tv_sec) * 1'000'000'000LL + (now.tv_nsec - begun.tv_nsec) < kLongestHold);
  }
};

} // namespace gpu
} // namespace aoti
