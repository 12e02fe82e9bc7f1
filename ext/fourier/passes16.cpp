// Passes with vectors of 16 bytes.
#define PB_BYTES 16
#define PB_NAMESPACE lanes16
#include "fourier/tasks.h"
