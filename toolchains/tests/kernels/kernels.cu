// The test kernels for NVIDIA GPUs.
#include "kernels.h"
