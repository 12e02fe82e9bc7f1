#include "standalone_archive.h"

#if defined(__ELF__) && defined(PULLBACK_STANDALONE)

asm(".section .rodata\n"
    ".balign 16\n"
    ".local pb_standalone_begin\n"
    "pb_standalone_begin:\n"
    ".incbin \"" PULLBACK_STANDALONE
    "\"\n"
    ".local pb_standalone_end\n"
    "pb_standalone_end:\n"
    ".byte 0\n"
    ".text\n");

extern "C" {
__attribute__((visibility("hidden"))) extern const char pb_standalone_begin[];
__attribute__((visibility("hidden"))) extern const char pb_standalone_end[];
}

pb::Bytes pb::standalone_archive() { return {pb_standalone_begin, size_t(pb_standalone_end - pb_standalone_begin)}; }

#else

pb::Bytes pb::standalone_archive() { return {nullptr, 0}; }

#endif
