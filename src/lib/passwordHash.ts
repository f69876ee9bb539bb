/**
 * Hashes of passwords and client secrets: argon2id with OWASP's parameters (19 MiB, 2 passes, 1 lane), as PHC strings.
 * Some 25 ms each, off the event loop.
 */
import { hash, verify } from '@node-rs/argon2';

/**
 * The algorithm is the library's default, argon2id; a test holds it to that, since its constant can't be imported under
 * `isolatedModules`.
 */
const OPTIONS = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

/** A new hash of the password, with a random salt: two hashes of one password differ. */
export async function hashPassword(password: string): Promise<string> {
  return hash(password, OPTIONS);
}

/**
 * Whether the password is the one behind the hash. @throws Error when that is no PHC string of argon2 (imports let none
 * in).
 */
export async function verifyPassword(passwordHash: string, password: string): Promise<boolean> {
  return verify(passwordHash, password);
}
