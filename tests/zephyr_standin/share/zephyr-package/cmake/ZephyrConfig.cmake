# SPDX-License-Identifier: Apache-2.0
# find_package(Zephyr) of the stand-in. Given: BOARD, EXTRA_CONF_FILE, EXTRA_ZEPHYR_MODULES as with Zephyr, and PYTHON,
# STANDIN_SUPPORT (a directory with the bare-metal support files and linker.ld of mps2_an386).
get_filename_component(standin ${CMAKE_CURRENT_LIST_DIR}/../../.. ABSOLUTE)
set(standin_output ${CMAKE_BINARY_DIR}/zephyr)
set(ENV{srctree} ${standin})
set(ENV{KCONFIG_BINARY_DIR} ${standin_output})
execute_process(
  COMMAND ${PYTHON} ${standin}/configure.py --application ${CMAKE_CURRENT_SOURCE_DIR} --board ${BOARD}
    "--modules=${EXTRA_ZEPHYR_MODULES}" "--extra-conf=${EXTRA_CONF_FILE}" --output ${standin_output}
  RESULT_VARIABLE standin_result)
if(standin_result)
  message(FATAL_ERROR "the configuration is wrong")
endif()
include(${standin_output}/config.cmake)

set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
project(Zephyr-Kernel LANGUAGES C)

set(standin_machine -mthumb -mcpu=cortex-m4)
if(CONFIG_FPU)
  list(APPEND standin_machine -mfloat-abi=hard -mfpu=fpv4-sp-d16)
endif()

# Options that every source file gets, in Zephyr's order: those of single libraries come behind them.
add_library(zephyr_interface INTERFACE)
target_include_directories(zephyr_interface INTERFACE ${standin}/include)
target_compile_options(zephyr_interface INTERFACE ${standin_machine} -Os -g -std=c17 -fno-common -fno-strict-aliasing
  -fno-strict-overflow -fno-asynchronous-unwind-tables -ffunction-sections -fdata-sections -fno-reorder-functions
  -imacros ${standin_output}/autoconf.h)
# The warnings of Zephyr's cmake/compiler/gcc/compiler_flags.cmake, those of W=1, and each an error.
set(standin_warnings -Wall -Wformat -Wformat-security -Wno-format-zero-length -Wdouble-promotion -Wno-pointer-sign
  -Wpointer-arith -Wexpansion-to-defined -Wno-unused-but-set-variable -Werror=implicit-int
  -Wextra -Wunused -Wno-unused-parameter -Wmissing-declarations -Wmissing-format-attribute -Wold-style-definition
  -Wmissing-prototypes -Wmissing-include-dirs -Wunused-but-set-variable -Wno-missing-field-initializers -Werror)

function(zephyr_include_directories)
  target_include_directories(zephyr_interface INTERFACE ${ARGN})
endfunction()

macro(zephyr_library_named name)
  set(ZEPHYR_CURRENT_LIBRARY ${name})
  add_library(${name} STATIC)
  target_link_libraries(${name} PUBLIC zephyr_interface)
  target_compile_options(${name} PRIVATE ${standin_warnings})
  set_property(GLOBAL APPEND PROPERTY standin_libraries ${name})
endmacro()

function(zephyr_library_sources)
  target_sources(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${ARGN})
endfunction()

function(zephyr_library_compile_definitions)
  target_compile_definitions(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${ARGN})
endfunction()

# As in Zephyr, an interface library of its own for each, named for the first option: it lands behind the global options.
function(zephyr_library_compile_options item)
  string(MD5 unique ${item})
  if(NOT TARGET options_${unique})
    add_library(options_${unique} INTERFACE)
    target_compile_options(options_${unique} INTERFACE ${item} ${ARGN})
  endif()
  target_link_libraries(${ZEPHYR_CURRENT_LIBRARY} PRIVATE options_${unique})
endfunction()

zephyr_library_named(app)

foreach(directory ${standin_module_dirs})
  string(MD5 unique ${directory})
  add_subdirectory(${directory} ${CMAKE_BINARY_DIR}/modules/${unique})
endforeach()
get_property(standin_libraries GLOBAL PROPERTY standin_libraries)

# The bare-metal support files are the machine below kernel.c; what they call main() and what they share names with the
# harness for is renamed.
file(GLOB standin_support ${STANDIN_SUPPORT}/*.c)
add_library(standin_machine OBJECT ${standin_support})
target_link_libraries(standin_machine PRIVATE zephyr_interface)
target_include_directories(standin_machine PRIVATE ${STANDIN_SUPPORT})
target_compile_definitions(standin_machine PRIVATE TINYET_CLOCK_HZ=25000000u TINYET_UART_BAUD=115200u
  TINYET_UART_BASE=${standin_console_address}u main=standin_main tinyet_platform=standin_platform
  tinyet_platform_read=standin_read tinyet_platform_write=standin_write tinyet_platform_counter=standin_counter
  tinyet_platform_counter_restart=standin_counter_restart tinyet_platform_abort=standin_abort)

add_executable(zephyr_final ${standin}/kernel.c $<TARGET_OBJECTS:standin_machine>)
set_target_properties(zephyr_final PROPERTIES OUTPUT_NAME zephyr SUFFIX .elf RUNTIME_OUTPUT_DIRECTORY ${standin_output})
target_link_libraries(zephyr_final PRIVATE -Wl,--whole-archive ${standin_libraries} -Wl,--no-whole-archive)
target_link_options(zephyr_final PRIVATE ${standin_machine} --specs=nano.specs -nostartfiles -Wl,--gc-sections
  -Wl,--fatal-warnings -T${STANDIN_SUPPORT}/linker.ld)
