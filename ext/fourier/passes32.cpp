// Passes with vectors of 32 bytes.
#define PB_BYTES 32
#define PB_NAMESPACE lanes32
#if defined(__x86_64__)
#include "fourier/tasks.h"
#endif
