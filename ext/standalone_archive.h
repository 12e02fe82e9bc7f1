// The static library that exported programs are linked with, as bytes in the extension: whoever has the extension can
// export, without further files to install.
#pragma once
#include <cstddef>

namespace pb {

struct Bytes {
    const char* data;
    size_t size;
};

// Sorting and selection without Python (ext/standalone, sorting.cpp, selection.cpp). Empty on systems whose libraries
// are not in the ELF format.
Bytes standalone_archive();

}  // namespace pb
