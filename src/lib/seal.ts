/** Authenticated encryption, so that a log, a store or a backup does not reveal its content without the keys. */
import { createCipheriv, createDecipheriv } from 'node:crypto';
import { randomBytes } from './world.js';

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** AES-256-GCM under one key. `binding` is authenticated: a text sealed with one binding opens with no other. */
export interface Seal {
  /** Encrypts bytes. @returns a nonce, the tag and the ciphertext, as base64url */
  seal(plain: Uint8Array, binding: string): string;
  /** Decrypts a sealed text. @throws Error where the key or the binding differs, or the text was changed */
  open(sealed: string, binding: string): Buffer;
}

/** @param key 32 bytes */
export function sealUnder(key: Uint8Array): Seal {
  return {
    seal(plain, binding) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(binding));
      const text = Buffer.concat([cipher.update(plain), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), text]).toString('base64url');
    },
    open(sealed, binding) {
      const bytes = Buffer.from(sealed, 'base64url');
      const text = bytes.subarray(NONCE_BYTES + TAG_BYTES);
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, NONCE_BYTES))
        .setAAD(Buffer.from(binding))
        .setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
      return Buffer.concat([decipher.update(text), decipher.final()]);
    },
  };
}

/** A text that was sealed (`runtime/personal/sealedTexts.ts`), or an empty one. */
export type SealedText = string & { readonly [SEALED]: true };
declare const SEALED: unique symbol;

export const NO_TEXT = '' as SealedText;
