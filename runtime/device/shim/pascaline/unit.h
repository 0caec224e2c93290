// Every unit for the emulated device begins with this. It may come precompiled, where `#pragma once` means nothing.
#ifndef PASCALINE_UNIT_H
#define PASCALINE_UNIT_H

#include "../cuda_runtime.h"
#include "entry.h"

#endif
