# Script mode: hashes the files listed in SOURCES_FILE (paths under ROOT) and fills in TEMPLATE.

file(STRINGS "${SOURCES_FILE}" sources)
set(digests "")
foreach(source IN LISTS sources)
  file(SHA256 "${source}" digest)
  file(RELATIVE_PATH name "${ROOT}" "${source}")
  string(APPEND digests "${digest}  ${name}\n")
endforeach()
string(SHA256 SOURCE_HASH "${digests}")
configure_file("${TEMPLATE}" "${OUTPUT}" @ONLY)
file(TOUCH_NOCREATE "${OUTPUT}")
