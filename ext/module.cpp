// The extension module pullback._ext._core. Bindings only: each part is documented in its own header.
#include <nanobind/nanobind.h>

namespace nb = nanobind;

NB_MODULE(_core, m) {
    m.doc() = "The native runtime of pullback: arrays, call cache, memory, threads.";
}
