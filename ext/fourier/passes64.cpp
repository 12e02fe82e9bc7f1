// Passes with vectors of 64 bytes.
#define PB_BYTES 64
#define PB_NAMESPACE lanes64
#if defined(__x86_64__)
#include "fourier/tasks.h"
#endif
