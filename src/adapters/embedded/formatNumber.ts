/**
 * A format mark as one number of 31 bits, for the header of an SQLite file (`user_version`), which is read without
 * opening the database: the format in the highest byte, then the three parts of the version.
 */
import { FORMAT_MARK, type FormatMark } from '../../ports/dataFormat.js';

export function formatNumber({ format, version }: FormatMark): number {
  const [major = 0, minor = 0, patch = 0] = version.split(/[.-]/).map(Number);
  return (format << 24) | (major << 16) | (minor << 8) | patch;
}

export const FORMAT_NUMBER = formatNumber(FORMAT_MARK);

export function formatMark(number: number): FormatMark {
  return { format: number >>> 24, version: [16, 8, 0].map((bits) => (number >>> bits) & 0xff).join('.') };
}
