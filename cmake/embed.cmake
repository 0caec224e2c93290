# pascaline_embed(TARGET FILE SYMBOL): makes the text of FILE available as `pascaline::SYMBOL`, a string_view
# declared in the generated header `SYMBOL.hpp` of TARGET.
function(pascaline_embed target file symbol)
  set(header ${CMAKE_CURRENT_BINARY_DIR}/embedded/${symbol}.hpp)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  # The length is given, as a compiler does not count that of a long text in a constant expression. Every compiler that is
  # supported takes a literal of this size; Clang says that others need not.
  file(CONFIGURE OUTPUT ${header} CONTENT
    "#pragma once\n\n#include <string_view>\n\nnamespace pascaline {\n#ifdef __clang__\n#pragma clang diagnostic push\n#pragma clang diagnostic ignored \"-Woverlength-strings\"\n#endif\ninline constexpr char @symbol@Text[] = R\"__EMBED__(@text@)__EMBED__\";\n#ifdef __clang__\n#pragma clang diagnostic pop\n#endif\ninline constexpr std::string_view @symbol@{@symbol@Text, sizeof(@symbol@Text) - 1};\n}\n" @ONLY)
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/embedded)
endfunction()
