#pragma once

// How a float32 becomes a code of float16x (docs/formats.md). The processor and a device compile this same text.

#include <cstring>

#ifdef __CUDACC_RTC__
#define PASCALINE_EVERYWHERE __device__ inline
#else
#define PASCALINE_EVERYWHERE inline
#endif

/// The numbers of a format by which values are rounded to its codes, in operations that are done for several values at
/// a time.
struct Float16xCode {
  unsigned int shift;   // from a float32's last place to that of a code
  float prescale;       // makes normal numbers of a float32 of all that are normal in the format; may overflow there
  unsigned int rebase;  // taken from the exponent
  float smallest_normal;
  float ulp_carrier;     // added to a subnormal magnitude, its last place is that of a code
  unsigned int largest;  // code without its sign

  /// Nearest, ties to even; beyond the largest code, the largest. Not for NaN.
  PASCALINE_EVERYWHERE unsigned short operator()(float value) const {
    const unsigned int bits = bits_of(value * prescale);
    const unsigned int magnitude = bits & 0x7FFFFFFFu;
    // Rounded at the last place that is kept; what carries into the exponent is the next code, as it should be.
    const unsigned int odd = (magnitude >> shift) & 1u;
    const unsigned int half = (1u << (shift - 1u)) - 1u;
    const unsigned int normal = (magnitude - rebase + half + odd) >> shift;
    float absolute;
    memcpy(&absolute, &magnitude, sizeof absolute);
    const unsigned int subnormal = bits_of(absolute + ulp_carrier) - bits_of(ulp_carrier);
    const unsigned int code = absolute < smallest_normal ? subnormal : normal;
    return static_cast<unsigned short>((code < largest ? code : largest) | (bits >> 16 & 0x8000u));
  }

 private:
  static PASCALINE_EVERYWHERE unsigned int bits_of(float value) {
    unsigned int bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
  }
};
