# Libraries of the distribution. SQLiteCpp, Boost.Context, nlohmann-json and CLI11 stay private to the folders
# that use them.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(SQLiteCpp REQUIRED)
# Boost 1.74's FindBoost module and newer packages' config files both provide this target.
if(POLICY CMP0167)
  cmake_policy(SET CMP0167 OLD)
endif()
find_package(Boost REQUIRED)
find_library(PASCALINE_BOOST_CONTEXT NAMES boost_context libboost_context.a REQUIRED)
find_path(PASCALINE_XXHASH_INCLUDE xxhash.h REQUIRED)

if(PASCALINE_BUILD_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
if(PASCALINE_BUILD_BENCH)
  find_package(benchmark REQUIRED)
endif()
