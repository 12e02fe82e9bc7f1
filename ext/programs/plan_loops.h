// Loops of plans that NumPy has none for, in the form of NumPy's strided loops.
#pragma once
#include "programs/plan.h"

namespace pb {

// Each is null if there is none for these types.
StridedLoop* copy_loop(npy_intp itemsize);    // in, out
// out[i, j] = in[j, i], where elements in[j, i] and in[j, i + 1] are neighbours, out[i, j] and out[i, j + 1], too. in, out;
// dimensions: of i and j, each at least a line of 64 bytes; strides: in's along j, out's along i.
StridedLoop* transpose_loop(npy_intp itemsize);
StridedLoop* select_loop(npy_intp itemsize);  // bool, value where false, value where true, out
// Floats become integers towards zero, moved into the limits, NaN 0; anything becomes bool by != 0.
StridedLoop* convert_loop(int from_type, int to_type);
// A reduction ("add", "mul", "max", "min") along one axis of at least one element, in the order of compiled code with
// vectors of so many bytes: of rows without gaps, or 0: of columns, each by itself, which may lie anyhow. x, out;
// dimensions: of results, of what each is made of, and of rows whether they are chunks of longer ones, whose length
// compiled code does not know; strides: x's from result to result, out's, of columns x's along the axis.
StridedLoop* reduction_loop(const char* name, int type, int vector_bytes);
// A product of two matrices of floats over at least one element, term after term, as compiled code with vectors of so many
// bytes does it. x, y, out; dimensions: of rows, columns and terms; strides: x's along rows and terms, y's along terms and
// columns, out's along rows and columns.
StridedLoop* product_loop(int type, int vector_bytes);

}  // namespace pb
