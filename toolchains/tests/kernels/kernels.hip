// The test kernels for AMD GPUs.
#include "kernels.h"
