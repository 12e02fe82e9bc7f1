// BLAS on the calling thread alone, while a program of ours asks it: its own threads would wait for ours by spinning.
//
// Programs of several Python threads may ask at once. The first that begins remembers how many threads BLAS had, and the
// last that ends gives them back; each for itself would give back what another had set.
#pragma once

namespace pb {

// Functions of the library: int get(void), void set(int). Until they are known, begin and end do nothing.
void set_blas_control(int (*get)(), void (*set)(int));

}  // namespace pb

extern "C" void pb_blas_begin();
extern "C" void pb_blas_end();
