// Loops of plans that NumPy has none for, in the form of NumPy's strided loops.
#pragma once
#include "programs/plan.h"

namespace pb {

// Each is null if there is none for these types.
StridedLoop* copy_loop(npy_intp itemsize);    // in, out
StridedLoop* select_loop(npy_intp itemsize);  // bool, value where false, value where true, out
// Floats become integers towards zero, moved into the limits, NaN 0; anything becomes bool by != 0.
StridedLoop* convert_loop(int from_type, int to_type);
// x, out: out[j] = the sum over i of x[i, j], as accurate as pairwise sums, whichever way x lies. dimensions: of j, of i
// (at least one); strides: x's along j, out's, x's along i.
StridedLoop* sum_loop(int type);

}  // namespace pb
