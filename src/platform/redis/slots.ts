/** Number of slots of a Redis Cluster. */
export const SLOTS = 16_384;

/** Returns the slot of a hash tag, as defined by the Redis Cluster specification. */
export function slotOf(tag: string): number {
  return crc16(Buffer.from(tag).toString("latin1")) % SLOTS;
}

/** For each value of the upper byte, its contribution to the checksum. */
const CRC_TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021;
  return crc;
});

/**
 * CRC-16/XMODEM of a text of bytes. If `before` is the checksum of a preceding text, the result is the checksum of both
 * texts together.
 */
export function crc16(bytes: string, before = 0): number {
  let crc = before;
  for (let at = 0; at < bytes.length; at += 1) {
    crc = ((crc << 8) ^ (CRC_TABLE[(crc >> 8) ^ bytes.charCodeAt(at)] as number)) & 0xffff;
  }
  return crc;
}
