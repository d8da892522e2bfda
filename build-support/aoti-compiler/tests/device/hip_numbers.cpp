// What driver.h says of HIP, against its headers.
#include "aoti/gpu/driver.h"
#include <hip/hip_runtime_api.h>

using namespace aoti::gpu;

constexpr Numbers own = backend(kAmd).numbers;
static_assert(own.compute_major == hipDeviceAttributeComputeCapabilityMajor && own.compute_minor == hipDeviceAttributeComputeCapabilityMinor);
static_assert(own.multiprocessors == hipDeviceAttributeMultiprocessorCount);
static_assert(own.function_shared == hipFuncAttributeMaxDynamicSharedMemorySize);
static_assert(kFunctionThreads == HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
static_assert(kStreamNonBlocking == hipStreamNonBlocking && kEventTiming == hipEventDefault && kEventNoTiming == hipEventDisableTiming);
static_assert(kHostPortable == hipHostMallocPortable && kHostMapped == hipHostMallocMapped);
static_assert(kInvalidValue == hipErrorInvalidValue && kOutOfMemory == hipErrorOutOfMemory && kNotSupported == hipErrorNotSupported);
static_assert(kCaptureRelaxed == hipStreamCaptureModeRelaxed);
static_assert(sizeof(HipKernelNode) == sizeof(hipKernelNodeParams));
#define SAME_PLACE(OWN, THEIRS) static_assert(offsetof(HipKernelNode, OWN) == offsetof(hipKernelNodeParams, THEIRS))
SAME_PLACE(threads, blockDim);
SAME_PLACE(extra, extra);
SAME_PLACE(function, func);
SAME_PLACE(blocks, gridDim);
SAME_PLACE(arguments, kernelParams);
SAME_PLACE(shared_bytes, sharedMemBytes);
