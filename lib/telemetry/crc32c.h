// CRC-32C (Castagnoli; reflected polynomial 0x82F63B78) and the mask that TFRecord files put over it.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

namespace hpt {

constexpr std::array<std::uint32_t, 256> make_crc32c_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1U) != 0 ? 0x82F63B78U : 0U);
    table[byte] = value;
  }
  return table;
}

constexpr std::uint32_t crc32c(std::string_view bytes) {
  constexpr std::array<std::uint32_t, 256> kTable = make_crc32c_table();
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const char c : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xFFU];
  return ~crc;
}

constexpr std::uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xA282EAD8U;
}

}  // namespace hpt
