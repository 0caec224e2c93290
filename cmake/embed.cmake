# pascaline_embed(TARGET FILE SYMBOL): makes the text of FILE available as `pascaline::SYMBOL`, a string_view
# declared in the generated header `SYMBOL.hpp` of TARGET.
function(pascaline_embed target file symbol)
  set(header ${CMAKE_CURRENT_BINARY_DIR}/embedded/${symbol}.hpp)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  # The length is given, as a compiler does not count that of a long text in a constant expression.
  file(CONFIGURE OUTPUT ${header} CONTENT
    "#pragma once\n\n#include <string_view>\n\nnamespace pascaline {\ninline constexpr char @symbol@Text[] = R\"__EMBED__(@text@)__EMBED__\";\ninline constexpr std::string_view @symbol@{@symbol@Text, sizeof(@symbol@Text) - 1};\n}\n" @ONLY)
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/embedded)
endfunction()
