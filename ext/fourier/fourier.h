// Discrete Fourier transforms along one axis, called by compiled programs. Thread-safe, without the GIL, on the thread
// that calls.
//
// Why here: as loop nests of the program they took LLVM 20 to 200 ms for each length; now a program with a transform
// compiles like one with a call. Lengths, plans and tables are arguments (lax/fourier/plans.py makes them), so that one
// copy of each pass serves all programs. passes.h has the passes, and is compiled once for each width of vectors.
#pragma once
#include <cstdint>

namespace pb::fourier {

// What a call does; lax/fourier/plans.py knows the same numbers.
enum Kind : int64_t {
    kRows = 0,      // count transforms of n complex numbers that lie one after the other
    kColumns = 1,   // count neighbouring transforms, whose elements are `inner` complex numbers apart
    kRealRows = 2,  // count transforms of inner = n real numbers to n / 2 + 1 complex ones
    kRowsToReal = 3,    // back; imaginary parts of elements that have none are not read
    kTurnedColumns = 4,  // columns whose results are turned by the plan's coarse and fine angles, and stored as rows
    kUntangle = 5,  // count of the numbers, from number `block` on, that follow a real transform's complex one
    kTangle = 6,    // count of those that precede the one back
    kArrays = 7     // count arrays of `inner` neighbouring columns that lie one after the other
};

// The fields of a plan, in order; offsets are into the table, and are of planes of real parts that are followed by
// planes of as many imaginary parts. After them, for each pass: radix, m (passes.h), offset of its
// angles.
enum Field : int64_t { kLength, kWork, kPasses, kChirp, kSpectrum, kCircle, kCoarse, kFine, kFields };

template <class T>
struct Task {
    Kind kind;
    int64_t count, inner, backward;
    T scale;
    int64_t block;  // the number of the block of columns, which chooses the coarse angles
    const int64_t* plan;
    const T* table;
    const void* x;
    void* out;
};

namespace lanes16 {
void transform(const Task<float>& task);
void transform(const Task<double>& task);
}  // namespace lanes16
#if defined(__x86_64__)
namespace lanes32 {
void transform(const Task<float>& task);
void transform(const Task<double>& task);
}  // namespace lanes32
namespace lanes64 {
void transform(const Task<float>& task);
void transform(const Task<double>& task);
}  // namespace lanes64
#endif

}  // namespace pb::fourier

extern "C" {
// out = the transform of x, times 1 / divisor.
void pb_fourier_f32(int64_t kind, int64_t count, int64_t inner, int64_t backward, int64_t divisor, int64_t block,
                    const int64_t* plan, const float* table, const void* x, void* out);
void pb_fourier_f64(int64_t kind, int64_t count, int64_t inner, int64_t backward, int64_t divisor, int64_t block,
                    const int64_t* plan, const double* table, const void* x, void* out);
}
