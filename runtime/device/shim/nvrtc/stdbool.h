#pragma once

// C++ has bool, true and false itself.
