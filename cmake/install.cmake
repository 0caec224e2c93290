# What `cmake --install` puts in place: libraries (exported by pascaline_library), their headers under
# include/pascaline, the program, and the data it reads at run time under share/pascaline.
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Pascaline)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/core ${PROJECT_SOURCE_DIR}/db ${PROJECT_SOURCE_DIR}/runtime
                  ${PROJECT_SOURCE_DIR}/model ${PROJECT_SOURCE_DIR}/report ${PROJECT_SOURCE_DIR}/tuner
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/pascaline
  FILES_MATCHING PATTERN "*.hpp"
  PATTERN "*_impl.hpp" EXCLUDE
  PATTERN "shim" EXCLUDE)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/search_spaces DESTINATION ${CMAKE_INSTALL_DATADIR}/pascaline
  FILES_MATCHING PATTERN "*.json")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/kernel_templates DESTINATION ${CMAKE_INSTALL_DATADIR}/pascaline
  FILES_MATCHING PATTERN "*.cu" PATTERN "*.cuh" PATTERN "*.h" PATTERN "*.hpp")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/runtime/device/shim DESTINATION ${CMAKE_INSTALL_DATADIR}/pascaline OPTIONAL)

# What scripts/setup.sh brought, so that an installation does not need this tree: each NVRTC with CUDA's headers of its
# version, which are looked for beside it.
install(CODE "file(GLOB versions RELATIVE ${PROJECT_SOURCE_DIR}/.toolkit ${PROJECT_SOURCE_DIR}/.toolkit/1*)
set(toolkit \${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/pascaline/toolkit)
foreach(version \${versions} jit_link)
  set(brought ${PROJECT_SOURCE_DIR}/.toolkit/\${version})
  file(GLOB_RECURSE libraries \${brought}/libnvrtc*.so.* \${brought}/libnvJitLink.so.*)
  list(FILTER libraries EXCLUDE REGEX [.]alt[.])
  file(INSTALL \${libraries} DESTINATION \${toolkit}/\${version}/lib)
  file(GLOB_RECURSE headers \${brought}/cuda_fp16.h \${brought}/target)
  list(FILTER headers INCLUDE REGEX \"/(cuda_fp16[.]h|nv/target)$\")
  foreach(header \${headers})
    string(REGEX REPLACE \"/(cuda_fp16[.]h|nv/target)$\" \"/\" folder \${header})
    file(INSTALL \${folder} DESTINATION \${toolkit}/\${version}/include)
  endforeach()
endforeach()")

if(TARGET pascaline)
  install(TARGETS pascaline RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES ${PROJECT_BINARY_DIR}/completion.bash
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME pascaline)
endif()
install(EXPORT PascalineTargets NAMESPACE Pascaline:: DESTINATION ${package_folder})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/PascalineConfig.cmake.in
  ${PROJECT_BINARY_DIR}/PascalineConfig.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/PascalineConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/PascalineConfig.cmake ${PROJECT_BINARY_DIR}/PascalineConfigVersion.cmake
  DESTINATION ${package_folder})
