// An empty kernel: what a launch takes by itself.
//
// Launch: one block of 32 threads.

extern "C" __global__ void __launch_bounds__(32) nothing() {}
