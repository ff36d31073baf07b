// The sums of the consistency check: of each tree, its leaves times the coefficients of their
// places.
#pragma once
#include "base.cuh"

// ---- GF(2^128): sum b_i r_i = sum_l X^l sum_i (bit l of b_i) r_i, so a product of binary matrices
// with 128 rows, one for each bit l, and 128 columns, one for each bit of a leaf. A tensor core
// counts the ones of a row and a column, of which the parity is the product.

// The bits of the coefficients as operands of `mma.m16n8k256`: of 256 leaves, 8 tiles of 16 rows,
// and 32 lanes, four words.
extern "C" __global__ void check_operands(const u32* coefficients, u32* out, u32 count) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count * 4) return;
    u32 q = i & 3, lane = i >> 2 & 31, tile = i >> 7 & 7, leaves = i >> 10;
    u32 row = tile * 16 + (lane >> 2) + 8 * (q & 1);
    u32 first = leaves * 256 + (lane & 3) * 32 + 128 * (q >> 1);
    u32 word = 0;
    for (u32 b = 0; b < 32; b++)
        word |= (coefficients[(first + b) * 4 + row / 32] >> row % 32 & 1) << b;
    out[i] = word;
}

// One of five steps in which 32 lanes exchange bits, so that bit j of lane i goes to bit i of lane j.
__device__ __forceinline__ u32 exchange_bits(u32 x, u32 step, u32 kept) {
    u32 y = __shfl_xor_sync(ALL, x, step);
    return lane_of() & step ? (x & ~kept) | (y >> step & kept) : (x & kept) | (y << step & ~kept);
}

// Four warps a tree, each with one word of the leaves.
extern "C" __global__ void __launch_bounds__(128) check_128(
    const uint4* leaves, const uint4* operands, uint4* sums, u32 trees, u32 block_size) {
    __shared__ u32 bits[4][8][33];
    __shared__ u32 product[8];
    u32 lane = lane_of(), w = threadIdx.x >> 5;
    for (u32 tree = blockIdx.x; tree < trees; tree += gridDim.x) {
        int counts[8][4][4] = {};
        const u32* in = (const u32*)(leaves + (u64)tree * block_size) + w;
        _Pragma("unroll 1") for (u32 first = 0; first < block_size; first += 256) {
            EACH for (int g = 0; g < 8; g++) {
                u32 x = in[(first + g * 32 + lane) * 4];
                x = exchange_bits(x, 16, 0x0000ffff);
                x = exchange_bits(x, 8, 0x00ff00ff);
                x = exchange_bits(x, 4, 0x0f0f0f0f);
                x = exchange_bits(x, 2, 0x33333333);
                bits[w][g][lane] = exchange_bits(x, 1, 0x55555555);
            }
            __syncwarp();
            u32 b[4][2];
            EACH for (int n = 0; n < 4; n++) {
                b[n][0] = bits[w][lane & 3][n * 8 + (lane >> 2)];
                b[n][1] = bits[w][(lane & 3) + 4][n * 8 + (lane >> 2)];
            }
            __syncwarp();
            EACH for (int tile = 0; tile < 8; tile++) {
                uint4 a = __ldg(operands + (first / 256 * 8 + tile) * 32 + lane);
                EACH for (int n = 0; n < 4; n++) {
                    int* c = counts[tile][n];
                    asm volatile(
                        "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc "
                        "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                        : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b[n][0]), "r"(b[n][1]));
                }
            }
        }
        // Bits 32 w to 32 w + 31 of row l, as coefficients of X^(l + 32 w) and the next.
        u32 sum[8] = {};
        EACH for (int tile = 0; tile < 8; tile++) {
            EACH for (int half = 0; half < 2; half++) {
                u32 row = 0;
                EACH for (int n = 0; n < 4; n++) {
                    u32 pair = (counts[tile][n][2 * half] & 1) | (counts[tile][n][2 * half + 1] & 1) << 1;
                    row |= pair << (n * 8 + (lane & 3) * 2);
                }
                row |= __shfl_xor_sync(ALL, row, 1);
                row |= __shfl_xor_sync(ALL, row, 2);
                row &= mask((lane & 3) == 0);
                u32 shift = tile * 16 + half * 8 + (lane >> 2) + 32 * w;
                u64 shifted = (u64)row << shift % 32;
                EACH for (int i = 0; i < 8; i++)
                    sum[i] ^= ((u32)shifted & mask(shift / 32 == i)) ^
                              ((u32)(shifted >> 32) & mask(shift / 32 + 1 == i));
            }
        }
        if (threadIdx.x < 8) product[threadIdx.x] = 0;
        __syncthreads();
        EACH for (int i = 0; i < 8; i++) {
            u32 all = __reduce_xor_sync(ALL, sum[i]);
            if (lane == 0) atomicXor(product + i, all);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            u64 r[4];
            EACH for (int i = 0; i < 4; i++) r[i] = product[2 * i] | (u64)product[2 * i + 1] << 32;
            sums[tree] = words(reduce128(r[0], r[1], r[2], r[3]));
        }
        __syncthreads();
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
            EACH for (int r = 0; r < 2; r++)
                sum[r] = fold61(sum[r] + multiply61(__ldg(coefficients + r * block_size + i), leaf));
        }
        EACH for (int r = 0; r < 2; r++) {
            u64 all = sum_lanes61(sum[r]);
            if (lane_of() == 0) sums[2 * tree + r] = all;
        }
    }
}
