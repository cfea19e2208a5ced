*** Comments ***
SPDX-License-Identifier: Apache-2.0
Runs the application of tinyet's projects on the boards that Renode has, with Renode's own test tool:

    renode-test --variable IMAGES:/path/of/the/images renode/tinyet.robot

IMAGES holds <board>.elf, the application (.pio/build/<board>/firmware.elf of a PlatformIO project), and, if you like,
<board>_too_large.elf, an image linked for more memory than the board has. Boards without an image are skipped.

*** Settings ***
Suite Setup       Setup
Suite Teardown    Teardown
Test Teardown     Test Teardown
Resource          ${RENODEKEYWORDS}
Test Template     Application Prints Its Outputs

*** Variables ***
${IMAGES}         ${CURDIR}

*** Test Cases ***    BOARD                UART
MPS2 AN385            mps2_an385           sysbus.uart0
MPS2 AN386            mps2_an386           sysbus.uart0
Nano 33 BLE           nano_33_ble          sysbus.uart0
Netduino Plus 2       netduinoplus2        sysbus.usart2
STM32F4 Discovery     stm32f4_discovery    sysbus.usart2
STM32F746 Disco       stm32f746g_disco     sysbus.usart1

MPS2 AN385 Too Small
    [Template]    Image That Does Not Fit Faults
    mps2_an385    sysbus.uart0

MPS2 AN386 Too Small
    [Template]    Image That Does Not Fit Faults
    mps2_an386    sysbus.uart0

Nano 33 BLE Too Small
    [Template]    Image That Does Not Fit Faults
    nano_33_ble    sysbus.uart0

Netduino Plus 2 Too Small
    [Template]    Image That Does Not Fit Faults
    netduinoplus2    sysbus.usart2

STM32F4 Discovery Too Small
    [Template]    Image That Does Not Fit Faults
    stm32f4_discovery    sysbus.usart2

STM32F746 Disco Too Small
    [Template]    Image That Does Not Fit Faults
    stm32f746g_disco    sysbus.usart1

*** Keywords ***
Load Image
    [Arguments]    ${board}    ${image}    ${uart}
    ${path}=    Set Variable    ${IMAGES}/${image}.elf
    ${there}=    Run Keyword And Return Status    File Should Exist    ${path}
    Skip If    not ${there}    there is no ${path}
    # With an equals sign Robot would take it for a named argument.
    Execute Command    set elf @${path}
    Execute Command    include @${CURDIR}/${board}.resc
    Create Terminal Tester    ${uart}

Application Prints Its Outputs
    [Arguments]    ${board}    ${uart}
    Load Image    ${board}    ${board}    ${uart}
    Start Emulation
    Wait For Line On Uart    ^\\w+: \\d+ ticks$    treatAsRegex=true    timeout=60
    Wait For Line On Uart    ^output 0:( \\S+)+$    treatAsRegex=true
    Wait For Line On Uart    largest: index
    Wait For Line On Uart    done
    Fault Status Should Be    0

Image That Does Not Fit Faults
    [Arguments]    ${board}    ${uart}
    Load Image    ${board}    ${board}_too_large    ${uart}
    Start Emulation
    Should Not Be On Uart    done    timeout=1
    ${fault}=    Run Keyword And Return Status    Fault Status Should Be    0
    Should Not Be True    ${fault}    msg=the image does not fit, and nothing faulted

Fault Status Should Be
    [Arguments]    ${expected}
    ${status}=    Execute Command    sysbus.cpu FaultStatus
    Should Be Equal As Integers    ${status.strip()}    ${expected}
