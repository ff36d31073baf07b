// All kernels, compiled to one file of PTX by `build.py`.
#include "check.cuh"
#include "code.cuh"
#include "trees.cuh"
