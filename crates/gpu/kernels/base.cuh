// Blocks, AES-128 from a table with one copy a lane, and the two fields.
//
// A table in memory that all lanes share answers in a time that depends on the addresses, so on
// secrets. Here entry e of lane l is at word 32 e + l of shared memory: lane l reads only its own
// bank, and 32 lanes are served at once whatever they read.
#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;

#define EACH _Pragma("unroll")
constexpr u32 ALL = 0xffffffffu;
constexpr u32 ROUNDS = 11;
// Words of the table of AES in shared memory; what a kernel needs beside it follows.
constexpr u32 TABLE = 256 * 32;
constexpr u64 P61 = (1ull << 61) - 1;

extern __shared__ __align__(16) u32 shared_words[];

struct Block {
    u32 w[4];
};

__device__ __forceinline__ Block block(uint4 v) { return {{v.x, v.y, v.z, v.w}}; }
__device__ __forceinline__ Block block(u64 low, u64 high) {
    return {{(u32)low, (u32)(low >> 32), (u32)high, (u32)(high >> 32)}};
}
__device__ __forceinline__ uint4 words(const Block& b) {
    return make_uint4(b.w[0], b.w[1], b.w[2], b.w[3]);
}
__device__ __forceinline__ Block operator^(const Block& a, const Block& b) {
    return {{a.w[0] ^ b.w[0], a.w[1] ^ b.w[1], a.w[2] ^ b.w[2], a.w[3] ^ b.w[3]}};
}
__device__ __forceinline__ Block operator&(const Block& a, u32 mask) {
    return {{a.w[0] & mask, a.w[1] & mask, a.w[2] & mask, a.w[3] & mask}};
}
__device__ __forceinline__ void operator^=(Block& a, const Block& b) { a = a ^ b; }
__device__ __forceinline__ u64 low(const Block& b) { return b.w[0] | (u64)b.w[1] << 32; }
__device__ __forceinline__ u64 high(const Block& b) { return b.w[2] | (u64)b.w[3] << 32; }
// All bits, where the condition holds.
__device__ __forceinline__ u32 mask(bool condition) { return condition ? ALL : 0; }

__device__ __forceinline__ Block shuffle(const Block& b, u32 lane) {
    Block out;
    EACH for (int i = 0; i < 4; i++) out.w[i] = __shfl_sync(ALL, b.w[i], lane);
    return out;
}

// The sum over the lanes of a warp.
__device__ __forceinline__ Block sum_lanes(const Block& b) {
    Block out;
    EACH for (int i = 0; i < 4; i++) out.w[i] = __reduce_xor_sync(ALL, b.w[i]);
    return out;
}

__device__ __forceinline__ void add_to(uint4* place, const Block& b) {
    EACH for (int i = 0; i < 4; i++) atomicXor((u32*)place + i, b.w[i]);
}

// ---- AES

// T[e] = (2 S[e], S[e], S[e], 3 S[e]), lowest byte first, of the S-box S.
__device__ u32 aes_table[256];

__device__ __forceinline__ u32 doubled(u32 x) { return (x << 1 ^ (x >> 7) * 0x11b) & 0xff; }

// Makes the table: 256 threads.
extern "C" __global__ void make_table() {
    u32 x = threadIdx.x, inverse = 1, s = 0;
    for (int power = 0; power < 254; power++) {
        u32 product = 0, a = inverse;
        for (int bit = 0; bit < 8; bit++, a = doubled(a)) product ^= x >> bit & 1 ? a : 0;
        inverse = product;
    }
    for (int i = 0; i < 5; i++) s ^= (inverse << i | inverse >> (8 - i)) & 0xff;
    s ^= 0x63;
    aes_table[x] = doubled(s) | s << 8 | s << 16 | (doubled(s) ^ s) << 24;
}

__device__ __forceinline__ u32 lane_of() { return threadIdx.x & 31; }

// Copies the table to shared memory: all threads of a block, before anything else.
__device__ __forceinline__ void load_table() {
    for (u32 first = threadIdx.x & ~31u; first < 256; first += blockDim.x) {
        u32 mine = aes_table[first + lane_of()];
        _Pragma("unroll 8") for (u32 e = 0; e < 32; e++)
            shared_words[(first + e) * 32 + lane_of()] = __shfl_sync(ALL, mine, e);
    }
    __syncthreads();
}

// T at byte B of x: its address is 128 times the byte, and 4 times the lane. The compiler adds the
// address of the table once more, unless the load is written like this.
template <int B>
__device__ __forceinline__ u32 entry(u32 x) {
    u32 place = (u32)__cvta_generic_to_shared(shared_words) + 4 * lane_of(), out;
    asm("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(place) : "r"(x), "n"(0x80u << 8 * B), "r"(place));
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(out) : "r"(place));
    return out;
}

// S at byte B0 of a, B1 of b, B2 of c and B3 of d.
template <int B0, int B1, int B2, int B3>
__device__ __forceinline__ u32 substituted(u32 a, u32 b, u32 c, u32 d) {
    u32 left = __byte_perm(entry<B0>(a), entry<B1>(b), 0x0051);
    u32 right = __byte_perm(entry<B2>(c), entry<B3>(d), 0x5100);
    return __byte_perm(left, right, 0x7610);
}

__device__ __forceinline__ void aes_round(Block& s, uint4 key) {
    u32 k[4] = {key.x, key.y, key.z, key.w};
    Block a = s;
    EACH for (int c = 0; c < 4; c++) {
        u32 x = __byte_perm(entry<1>(a.w[(c + 1) & 3]), 0, 0x2103);
        u32 y = __byte_perm(entry<2>(a.w[(c + 2) & 3]), 0, 0x1032);
        u32 z = __byte_perm(entry<3>(a.w[(c + 3) & 3]), 0, 0x0321);
        s.w[c] = entry<0>(a.w[c]) ^ x ^ y ^ z ^ k[c];
    }
}

__device__ __forceinline__ void aes_last_round(Block& s, uint4 key) {
    u32 k[4] = {key.x, key.y, key.z, key.w};
    Block a = s;
    EACH for (int c = 0; c < 4; c++)
        s.w[c] = k[c] ^ substituted<0, 1, 2, 3>(
            a.w[c], a.w[(c + 1) & 3], a.w[(c + 2) & 3], a.w[(c + 3) & 3]);
}

template <int N>
__device__ __forceinline__ void encrypt(Block (&s)[N], const uint4* keys) {
    Block key = block(keys[0]);
    EACH for (int n = 0; n < N; n++) s[n] ^= key;
    _Pragma("unroll 1") for (int round = 1; round < 10; round++) {
        uint4 key = keys[round];
        EACH for (int n = 0; n < N; n++) aes_round(s[n], key);
    }
    uint4 last = keys[10];
    EACH for (int n = 0; n < N; n++) aes_last_round(s[n], last);
}

// The next round key.
__device__ __forceinline__ uint4 next_key(uint4 k, u32 constant) {
    u32 t = substituted<1, 2, 3, 0>(k.w, k.w, k.w, k.w) ^ constant;
    k.x ^= t;
    k.y ^= k.x;
    k.z ^= k.y;
    k.w ^= k.z;
    return k;
}

// s(l || r) = (l ^ r) || l, with l the high half.
__device__ __forceinline__ Block orthomorphism(const Block& x) {
    return {{x.w[2], x.w[3], x.w[2] ^ x.w[0], x.w[3] ^ x.w[1]}};
}

// H(x) = AES(s(x)) ^ s(x).
template <int N>
__device__ __forceinline__ void circular(const Block (&x)[N], Block (&h)[N], const uint4* keys) {
    EACH for (int n = 0; n < N; n++) h[n] = orthomorphism(x[n]);
    encrypt(h, keys);
    EACH for (int n = 0; n < N; n++) h[n] ^= orthomorphism(x[n]);
}

__device__ __forceinline__ Block circular(const Block& x, const uint4* keys) {
    Block in[1] = {x}, out[1];
    circular(in, out, keys);
    return out[0];
}

// The round keys of a key: 11 blocks, by one warp.
extern "C" __global__ void key_schedule(const uint4* from, uint4* out) {
    load_table();
    uint4 key = *from;
    u32 constant = 1;
    for (u32 round = 0; round < ROUNDS; round++) {
        out[round] = key;
        key = next_key(key, constant);
        constant = doubled(constant);
    }
}

// ---- Integers modulo 2^61 - 1

// At most 2^61 + 6, with the same remainder.
__device__ __forceinline__ u64 fold61(u64 x) { return (x & P61) + (x >> 61); }
__device__ __forceinline__ u64 reduce61(u64 x) {
    x = fold61(x);
    return (x + ((x + 1) >> 61)) & P61;
}
__device__ __forceinline__ u64 multiply61(u64 a, u64 b) {
    u64 l = a * b, h = __umul64hi(a, b);
    return reduce61((l & P61) + (h << 3 | l >> 61));
}
__device__ __forceinline__ u64 negative61(u64 x) { return reduce61(P61 - x); }
__device__ __forceinline__ u64 sum_lanes61(u64 x) {
    for (int d = 16; d > 0; d /= 2) x = fold61(x + __shfl_xor_sync(ALL, x, d));
    return reduce61(x);
}

// ---- GF(2^128), modulo X^128 + X^7 + X^2 + X + 1

// The product of polynomials: in integers with three of four bits zero no carry reaches a used bit,
// as at most 8 ones add up at a place of a product. Of two products that are added here the places
// with 8 differ, so that it is 15 of both.
__device__ __forceinline__ u64 carryless(u32 x, u32 y) {
    constexpr u64 HOLES = 0x1111111111111111ull;
    u32 a[4], b[4];
    EACH for (int i = 0; i < 4; i++) {
        a[i] = x & (u32)HOLES << i;
        b[i] = y & (u32)HOLES << i;
    }
    auto product = [&](int i, int j) { return (u64)a[i] * b[j]; };
    u64 r0 = (product(0, 0) + product(1, 3)) ^ product(2, 2) ^ product(3, 1);
    u64 r1 = (product(0, 1) + product(2, 3)) ^ (product(1, 0) + product(3, 2));
    u64 r2 = (product(0, 2) + product(3, 3)) ^ product(1, 1) ^ product(2, 0);
    u64 r3 = product(0, 3) ^ product(1, 2) ^ product(2, 1) ^ product(3, 0);
    return (r0 & HOLES) | (r1 & HOLES << 1) | (r2 & HOLES << 2) | (r3 & HOLES << 3);
}

__device__ __forceinline__ void carryless(u64 a, u64 b, u64& l, u64& h) {
    u64 x = carryless((u32)a, (u32)b), y = carryless((u32)(a >> 32), (u32)(b >> 32));
    u64 m = carryless((u32)(a ^ a >> 32), (u32)(b ^ b >> 32)) ^ x ^ y;
    l = x ^ m << 32;
    h = y ^ m >> 32;
}

// A polynomial of 256 bits.
__device__ __forceinline__ Block reduce128(u64 r0, u64 r1, u64 r2, u64 r3) {
    r1 ^= r3 ^ r3 << 1 ^ r3 << 2 ^ r3 << 7;
    r2 ^= r3 >> 63 ^ r3 >> 62 ^ r3 >> 57;
    r0 ^= r2 ^ r2 << 1 ^ r2 << 2 ^ r2 << 7;
    r1 ^= r2 >> 63 ^ r2 >> 62 ^ r2 >> 57;
    return block(r0, r1);
}

__device__ __forceinline__ Block multiply128(const Block& a, const Block& b) {
    u64 l0, l1, h0, h1, m0, m1;
    carryless(low(a), low(b), l0, l1);
    carryless(high(a), high(b), h0, h1);
    carryless(low(a) ^ high(a), low(b) ^ high(b), m0, m1);
    return reduce128(l0, l1 ^ m0 ^ l0 ^ h0, h0 ^ m1 ^ l1 ^ h1, h1);
}
