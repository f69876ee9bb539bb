/** Argon2id with OWASP's parameters (19 MiB, 2 passes, 1 lane), as PHC strings, computed off the event loop. */
import { hash, verify } from '@node-rs/argon2';
import { randomBytes } from './world.js';

/** Argon2id is the library's default, which a test checks: the constant can't be imported under `isolatedModules`. */
const OPTIONS = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

/** The cost of hashes that are made here: KiB, passes and lanes, as in a PHC string. */
export const PRESENT_COST = `m=${OPTIONS.memoryCost},t=${OPTIONS.timeCost},p=${OPTIONS.parallelism}`;

const SALT_BYTES = 16;
const HASH_BYTES = 32;

/** Computes hashes off the event loop, as `@node-rs/argon2` does. */
export interface PasswordHashing {
  readonly hash: (password: string, options: typeof OPTIONS) => Promise<string>;
  readonly verify: (passwordHash: string, password: string) => Promise<boolean>;
}

let hashing: PasswordHashing = { hash, verify };

/** Puts another way to compute hashes in the place of the present one, for a simulation. @returns the former one */
export function replaceHashing(other: PasswordHashing): PasswordHashing {
  const former = hashing;
  hashing = other;
  return former;
}

export async function hashPassword(password: string): Promise<string> {
  return hashing.hash(password, OPTIONS);
}

/** @throws Error when the hash is not a PHC string of argon2; imports refuse those */
export async function verifyPassword(passwordHash: string, password: string): Promise<boolean> {
  return hashing.verify(passwordHash, password);
}

/** The cost of a hash, as spelt in its PHC string; `undefined`: an import does not accept the hash. */
export function costOf(passwordHash: string): string | undefined {
  return /^\$argon2id\$v=19\$(m=\d+,t=\d+,p=\d+)\$/.exec(passwordHash)?.[1];
}

/** A hash that no password matches. Verifying a password takes as long as with a real hash of this cost. */
export function hashOfNobody(cost: string): string {
  const random = (bytes: number): string => randomBytes(bytes).toString('base64').replaceAll('=', '');
  return `$argon2id$v=19$${cost}$${random(SALT_BYTES)}$${random(HASH_BYTES)}`;
}
