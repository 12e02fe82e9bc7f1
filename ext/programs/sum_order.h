// The order in which sums of floats are added, by loops of plans (plan_reductions.cpp) and by compiled code
// (loops/emit/vector_loops.py, which has it from here): rows by lanes, columns one element after the other.
#pragma once

namespace pb {

constexpr long kSumBlock = 16;   // steps of all partial sums of a row between two compensated additions
constexpr long kSumFew = 16;     // partial sums: fewer take twice as many steps before they are compensated at all
constexpr long kSumChain = 16;   // elements of a column that are added one by one
constexpr long kSumSteps = 128;  // elements of a column between two compensated additions

}  // namespace pb
