// The sums of the consistency check: of each tree, its leaves times the coefficients of their
// places.
#pragma once
#include "base.cuh"

// ---- GF(2^128): sum b_i r_i = sum_l X^l sum_i (bit l of b_i) r_i, so a product of binary matrices
// with 128 rows, one for each bit l, and 128 columns, one for each bit of a leaf. A tensor core
// counts the ones of a row and a column, of which the parity is the product.
//
// A step is 512 leaves of a tree, 128 for each of four warps. `ldmatrix` gives lane 4 p + q piece
// p, of 16 bits, of leaves 8 i + 2 q and 8 i + 2 q + 1, i < 16: all that the tensor core takes from
// this lane, but for the order of the bits. Then each warp multiplies 32 rows by all columns.

constexpr u32 STEP_LEAVES = 512;

// The bits of the coefficients as operands of `mma.m16n8k256`: of 256 leaves, 8 tiles of 16 rows,
// and 32 lanes, four words.
extern "C" __global__ void check_operands(const u32* coefficients, u32* out, u32 count) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count * 4) return;
    u32 q = i & 3, lane = i >> 2 & 31, tile = i >> 7 & 7, leaves = i >> 10;
    u32 row = tile * 16 + (lane >> 2) + 8 * (q & 1);
    u32 first = leaves * 256 + 128 * (q >> 1) + 2 * (lane & 3);
    u32 word = 0;
    EACH for (u32 b = 0; b < 32; b++) {
        u32 leaf = first + 8 * (b & 15) + (b >> 4);
        word |= (coefficients[leaf * 4 + row / 32] >> row % 32 & 1) << b;
    }
    out[i] = word;
}

__device__ __forceinline__ u32 shared_address(const void* p) {
    return (u32)__cvta_generic_to_shared(p);
}

// Bit j of each half of word i goes to bit i of that half of word j.
__device__ __forceinline__ void transpose_bits(u32 (&x)[16]) {
    EACH for (int d = 8; d > 0; d /= 2) {
        u32 kept = d == 8 ? 0x00ff00ff : d == 4 ? 0x0f0f0f0f : d == 2 ? 0x33333333 : 0x55555555;
        EACH for (int i = 0; i < 16; i++) {
            if (i & d) continue;
            u32 a = x[i], b = x[i + d];
            x[i] = (a & kept) | (b << d & ~kept);
            x[i + d] = (a >> d & kept) | (b & ~kept);
        }
    }
}

extern "C" __global__ void __launch_bounds__(128, 3) check_128(
    const uint4* leaves, const uint4* operands, uint4* sums, u32 trees, u32 block_size) {
    __shared__ uint4 fetched[2][4][128];
    __shared__ uint4 columns[2][4][4][32];
    __shared__ u64 parts[4][4];
    u32 lane = lane_of(), w = threadIdx.x >> 5;
    u32 steps = block_size / STEP_LEAVES;
    u32 last = ((trees - 1 - blockIdx.x) / gridDim.x + 1) * steps;
    // The warp's leaves of a step, while it works on those of the step before.
    auto fetch = [&](u32 step) {
        u64 tree = blockIdx.x + (u64)(step / steps) * gridDim.x;
        u32 first = step % steps * STEP_LEAVES + w * 128 + lane;
        const uint4* from = leaves + tree * block_size + first;
        if (step < last)
            EACH for (int i = 0; i < 4; i++)
                asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                    shared_address(&fetched[step & 1][w][i * 32 + lane])), "l"(from + i * 32));
        asm volatile("cp.async.commit_group;");
    };
    if (blockIdx.x >= trees) return;
    fetch(0);
    for (u32 step = 0; step < last;) {
        int counts[2][16][4] = {};
        _Pragma("unroll 1") for (u32 chunk = 0; chunk < 2 * steps; chunk += 2, step++) {
            fetch(step + 1);
            asm volatile("cp.async.wait_group 1;" ::: "memory");
            __syncwarp();
            u32 x[16];
            EACH for (int i = 0; i < 16; i += 4)
                asm volatile(
                    "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                    : "=r"(x[i]), "=r"(x[i + 1]), "=r"(x[i + 2]), "=r"(x[i + 3])
                    : "r"(shared_address(&fetched[step & 1][w][i * 8 + lane]))
                    : "memory");
            transpose_bits(x);
            EACH for (int i = 0; i < 4; i++)
                columns[step & 1][w][i][lane] =
                    make_uint4(x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]);
            __syncthreads();
            EACH for (int half = 0; half < 2; half++) {
                uint4 a[2];
                EACH for (int m = 0; m < 2; m++)
                    a[m] = __ldg(operands + ((chunk + half) * 8 + 2 * w + m) * 32 + lane);
                EACH for (int i = 0; i < 4; i++) {
                    uint4 b = columns[step & 1][2 * half][i][lane];
                    uint4 c = columns[step & 1][2 * half + 1][i][lane];
                    u32 low[4] = {b.x, b.y, b.z, b.w}, high[4] = {c.x, c.y, c.z, c.w};
                    EACH for (int n = 0; n < 4; n++) {
                        EACH for (int m = 0; m < 2; m++) {
                            int* out = counts[m][4 * i + n];
                            asm volatile(
                                "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc "
                                "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                                : "+r"(out[0]), "+r"(out[1]), "+r"(out[2]), "+r"(out[3])
                                : "r"(a[m].x), "r"(a[m].y), "r"(a[m].z), "r"(a[m].w), "r"(low[n]),
                                  "r"(high[n]));
                        }
                    }
                }
            }
        }
        // Count 2 h + e of tiles m and n is of row 32 w + 16 m + 8 h + lane / 4, and of bit n of
        // piece 2 (lane % 4) + e: of X to the sum of both.
        u64 part = 0;
        EACH for (int s = 0; s < 56; s++) {
            u32 ones = 0;
            EACH for (int i = 0; i < 8; i++) {
                int m = i >> 2, h = i >> 1 & 1, e = i & 1, n = s - 16 * (m + e) - 8 * h;
                if (n >= 0 && n < 16) ones ^= counts[m][n][2 * h + e];
            }
            part ^= (u64)(ones & 1) << s;
        }
        part <<= lane >> 2;
        EACH for (int d = 4; d < 32; d *= 2) part ^= __shfl_xor_sync(ALL, part, d);
        if (lane < 4) parts[w][lane] = part;
        __syncthreads();
        if (threadIdx.x == 0) {
            u64 r[4] = {};
            EACH for (int i = 0; i < 16; i++) {
                u64 x = parts[i >> 2][i & 3];
                u32 word = (i >> 2) + (i & 3);
                r[word / 2] ^= word & 1 ? x << 32 : x;
                if (word & 1) r[word / 2 + 1] ^= x >> 32;
            }
            u64 tree = blockIdx.x + (u64)(step / steps - 1) * gridDim.x;
            sums[tree] = words(reduce128(r[0], r[1], r[2], r[3]));
        }
    }
}

// ---- Modulo 2^61 - 1: both repetitions of a tree, `sums[2 tree + repetition]`, one warp a tree.
extern "C" __global__ void __launch_bounds__(256) check_61(
    const u64* leaves, const u64* coefficients, u64* sums, u32 trees, u32 block_size) {
    for (u32 tree = (blockIdx.x * blockDim.x + threadIdx.x) >> 5; tree < trees;
         tree += gridDim.x * blockDim.x >> 5) {
        u64 sum[2] = {};
        for (u32 i = lane_of(); i < block_size; i += 32) {
            u64 leaf = __ldcs(leaves + (u64)tree * block_size + i);
            EACH for (int r = 0; r < 2; r++) {
                u64 coefficient = __ldg(coefficients + r * block_size + i);
                sum[r] = fold61(sum[r] + multiply61(coefficient, leaf));
            }
        }
        EACH for (int r = 0; r < 2; r++) {
            u64 all = sum_lanes61(sum[r]);
            if (lane_of() == 0) sums[2 * tree + r] = all;
        }
    }
}
