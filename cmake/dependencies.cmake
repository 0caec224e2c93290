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

# What a model needs besides kernels: Unicode and images. OpenBLAS is loaded at run time, if it is needed.
find_path(PASCALINE_PCRE2_INCLUDE pcre2.h REQUIRED)
find_library(PASCALINE_PCRE2 pcre2-8 REQUIRED)
find_path(PASCALINE_UTF8PROC_INCLUDE utf8proc.h REQUIRED)
find_library(PASCALINE_UTF8PROC utf8proc REQUIRED)
find_package(PNG REQUIRED)
find_package(JPEG REQUIRED)
find_path(PASCALINE_WEBP_INCLUDE webp/demux.h REQUIRED)
find_library(PASCALINE_WEBP webp REQUIRED)
find_library(PASCALINE_WEBPDEMUX webpdemux REQUIRED)

# Recorded spaces of other tuners are often packed.
find_package(ZLIB REQUIRED)

# The live report's HTTP server. Debian compiles cpp-httplib with everything it can use, and so must who includes it.
find_path(PASCALINE_HTTPLIB_INCLUDE httplib.h REQUIRED)
find_library(PASCALINE_HTTPLIB cpp-httplib)
add_library(pascaline_httplib INTERFACE)
target_include_directories(pascaline_httplib SYSTEM INTERFACE ${PASCALINE_HTTPLIB_INCLUDE})
if(PASCALINE_HTTPLIB)
  target_link_libraries(pascaline_httplib INTERFACE ${PASCALINE_HTTPLIB})
  target_compile_definitions(pascaline_httplib INTERFACE
    CPPHTTPLIB_OPENSSL_SUPPORT CPPHTTPLIB_ZLIB_SUPPORT CPPHTTPLIB_BROTLI_SUPPORT)
endif()

# Charts of the HTML report, put into the program.
find_file(PASCALINE_CHART_JS chart.min.js PATHS /usr/share/javascript/chart.js /usr/share/nodejs/chart.js/dist)
if(NOT PASCALINE_CHART_JS)
  message(FATAL_ERROR "Chart.js is missing: install Debian's package libjs-chart.js (scripts/setup.sh does), or give "
    "the path of a chart.min.js of version 3 with -DPASCALINE_CHART_JS=FILE")
endif()
file(READ ${PASCALINE_CHART_JS} chart_banner LIMIT 200)
if(NOT chart_banner MATCHES "Chart\\.js v3\\.")
  message(FATAL_ERROR "${PASCALINE_CHART_JS} is not version 3 of Chart.js, which the HTML report is written for")
endif()

if(PASCALINE_BUILD_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
if(PASCALINE_BUILD_BENCH)
  find_package(benchmark REQUIRED)
endif()
