/** Argon2id with OWASP's parameters (19 MiB, 2 passes, 1 lane), as PHC strings, computed off the event loop. */
import { hash, verify } from '@node-rs/argon2';

/** Argon2id is the library's default, which a test checks: the constant can't be imported under `isolatedModules`. */
const OPTIONS = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

export async function hashPassword(password: string): Promise<string> {
  return hash(password, OPTIONS);
}

/** @throws Error when the hash is not a PHC string of argon2; imports refuse those */
export async function verifyPassword(passwordHash: string, password: string): Promise<boolean> {
  return verify(passwordHash, password);
}
