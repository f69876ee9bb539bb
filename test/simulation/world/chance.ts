/** Seeded chance: the same seed gives the same draws. Each name has a stream of draws of its own. */
import { createHash } from 'node:crypto';

export interface Chance {
  /** A number from 0 to below 1, with 53 random bits. */
  random(): number;
  /** An integer from 0 to below `end`. */
  integer(end: number): number;
  /** A number from `least` to below `most`. */
  between(least: number, most: number): number;
  /** A number from `least` to below `most`, spread evenly over the orders of magnitude: short ones are as likely. */
  spread(least: number, most: number): number;
  /** Whether something of this probability happens. A probability of 0 draws nothing. */
  happens(probability: number): boolean;
  /** @throws RangeError for an empty list */
  pick<T>(list: readonly T[]): T;
  bytes(size: number): Buffer;
  /** A UUID of version 4. */
  uuid(): string;
  /**
   * Chance with draws of its own, which depend on the seed and the names only. So one more draw in one place does not
   * change those of another place.
   */
  stream(name: string): Chance;
}

const BITS_32 = 2 ** 32;
const BITS_53 = 2 ** 53;

/** The chance of a seed. */
export function seededChance(seed: number | string): Chance {
  return chanceOf(String(seed));
}

function chanceOf(name: string): Chance {
  const draw = generator(createHash('sha256').update(name).digest());
  const random = (): number => ((draw() >>> 11) * BITS_32 + draw()) / BITS_53;
  const bytes = (size: number): Buffer => {
    const drawn = Buffer.allocUnsafe(size);
    for (let at = 0; at < size; at += 4) {
      const word = draw();
      for (let byte = 0; byte < 4 && at + byte < size; byte++) drawn[at + byte] = word >>> (byte * 8);
    }
    return drawn;
  };
  const integer = (end: number): number => Math.floor(random() * end);
  return {
    random,
    integer,
    between: (least, most) => least + random() * (most - least),
    spread: (least, most) => least * (most / least) ** random(),
    happens: (probability) => probability > 0 && random() < probability,
    pick(list) {
      if (list.length === 0) throw new RangeError('nothing to pick from');
      return list[integer(list.length)] as (typeof list)[number];
    },
    bytes,
    uuid: () => uuidOf(bytes(16)),
    stream: (part) => chanceOf(`${name}/${part}`),
  };
}

/**
 * The generator sfc32 of PractRand: 128 bits of state, 32 bits a draw. It is small and fast, and passes the usual
 * statistical tests; its draws are not secret.
 */
function generator(seed: Buffer): () => number {
  let [a, b, c] = [0, 4, 8].map((at) => seed.readUInt32LE(at)) as [number, number, number];
  let counter = 1;
  const draw = (): number => {
    const drawn = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << BITS_ROTATED) | (c >>> (32 - BITS_ROTATED))) + drawn;
    c |= 0;
    return drawn >>> 0;
  };
  // The first draws still resemble the seed.
  for (let n = 0; n < 12; n++) draw();
  return draw;
}

const BITS_ROTATED = 21;

function uuidOf(bytes: Buffer): string {
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
