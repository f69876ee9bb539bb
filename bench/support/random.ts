/** Repeatable randomness for generated histories: the same seed gives the same history. Not for secrets. */

/** A stream of pseudo-random numbers. */
export interface Random {
  /** From 0 up to, not including, `bound`. */
  below(bound: number): number;
  /** Hexadecimal digits. */
  hex(bytes: number): string;
  /** An id in the shape of a version 4 UUID. */
  uuid(): string;
}

/** Mulberry32. */
export function random(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  const word = (): string => next().toString(16).padStart(8, '0');
  return {
    below: (bound) => Math.floor((next() / 2 ** 32) * bound),
    hex(bytes) {
      let digits = '';
      while (digits.length < bytes * 2) digits += word();
      return digits.slice(0, bytes * 2);
    },
    uuid() {
      const [a, b, c, d] = [word(), word(), word(), word()];
      return `${a}-${b.slice(0, 4)}-4${b.slice(5)}-a${c.slice(1, 4)}-${c.slice(4)}${d}`;
    },
  };
}
