# install(): headers, both libraries, the command, pkg-config and the CMake package.
include(CMakePackageConfigHelpers)

install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/tenon DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(TARGETS tenon_static tenon_shared EXPORT TenonTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET tenon)
  install(TARGETS tenon RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES ${CMAKE_BINARY_DIR}/share/man DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 RENAME tenon.1)
  install(FILES ${CMAKE_BINARY_DIR}/share/completion DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
          RENAME tenon)
endif()
install(EXPORT TenonTargets NAMESPACE Tenon:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Tenon)

configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/TenonConfig.cmake.in ${CMAKE_BINARY_DIR}/TenonConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Tenon)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/TenonConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/TenonConfig.cmake ${CMAKE_BINARY_DIR}/TenonConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Tenon)

# From <libdir>/pkgconfig back to the prefix (libdir may be lib/<triplet>).
string(REGEX REPLACE "[^/]+" ".." tenon_pc_up "${CMAKE_INSTALL_LIBDIR}")
configure_file(${CMAKE_SOURCE_DIR}/cmake/tenon.pc.in ${CMAKE_BINARY_DIR}/tenon.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/tenon.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
