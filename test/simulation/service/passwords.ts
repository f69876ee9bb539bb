/** Password hashes of a simulation: of Argon2's form, and made at once. */
import { createHash } from 'node:crypto';
import type { PasswordHashing } from '../../../src/lib/passwordHash.js';
import { randomBytes } from '../../../src/lib/world.js';

const SALT_BYTES = 16;

const unpadded = (bytes: Buffer): string => bytes.toString('base64').replaceAll('=', '');

/** A hash in the form of a PHC string. @param cost such as `m=19456,t=2,p=1` */
export function simulatedHash(password: string, cost: string, salt: string): string {
  const hash = createHash('sha256').update(`${salt} ${password}`).digest();
  return `$argon2id$v=19$${cost}$${salt}$${unpadded(hash)}`;
}

export const SIMULATED_HASHING: PasswordHashing = {
  hash: async (password, { memoryCost, timeCost, parallelism }) =>
    simulatedHash(password, `m=${memoryCost},t=${timeCost},p=${parallelism}`, unpadded(randomBytes(SALT_BYTES))),
  async verify(passwordHash, password) {
    const [, , , cost = '', salt = ''] = passwordHash.split('$');
    return simulatedHash(password, cost, salt) === passwordHash;
  },
};
