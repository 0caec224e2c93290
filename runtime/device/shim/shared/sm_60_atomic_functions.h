#pragma once

// A kernel has what it declares without it.
