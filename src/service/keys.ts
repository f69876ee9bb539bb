/** The keys of an installation: as set, or made once and kept beside the embedded engines' files. */
import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { EngineError } from '../lib/engineError.js';
import type { Config } from './config.js';
import { makeDataDir } from './dataDir.js';
import { linkFile } from '../lib/files/folderErrors.js';
import { keepOwner } from '../lib/files/keepOwner.js';
import { syncFolder } from '../lib/files/syncFolder.js';

/** Where the key of access tokens is kept within DATA_DIR. */
export const TOKEN_KEY_FILE = 'token.key';
/** Where the key of hashes is. */
export const HASH_KEY_FILE = 'hash.key';

/** Both are secret. */
export interface Keys {
  /** The first signs access tokens, all verify. */
  readonly tokenKeys: readonly string[];
  /** The key of every HMAC in stream names and command ids. Losing it loses usernames and phone numbers. */
  readonly hashKey: Buffer;
}

/**
 * The keys of this configuration. Makes `token.key` and `hash.key` (mode 0600) in the data folder where they are
 * neither set nor kept yet; of several processes that start at once one makes them. @throws EngineError when a kept key
 * is cut short or no key at all, or the folder can't be made.
 */
export function loadKeys(config: Pick<Config, 'dataDir' | 'tokenKeys' | 'hashKey'>): Keys {
  makeDataDir(config.dataDir);
  return {
    tokenKeys: config.tokenKeys ?? [kept(join(config.dataDir, TOKEN_KEY_FILE))],
    hashKey: Buffer.from(config.hashKey ?? kept(join(config.dataDir, HASH_KEY_FILE))),
  };
}

/** One line of plain text, as `make` writes it or somebody brought it; what is no text is no key. */
const WHOLE = /^[\x20-\x7e]{43,}$/;

function kept(file: string): string {
  const read = (): string | undefined => {
    try {
      return readFileSync(file, 'utf8').trim();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
  };
  const key = read() ?? (make(file), read());
  if (key === undefined || !WHOLE.test(key))
    throw new EngineError(
      'DATA_DIR',
      `${file} is not a whole key: put back the one this installation was started with; it was left as it is`,
    );
  return key;
}

/**
 * The hash key of this configuration as it is, set or kept; `undefined` where it is neither: none is made. @throws
 * EngineError when a kept key is cut short or no key at all
 */
export function findHashKey(config: Pick<Config, 'dataDir' | 'hashKey'>): Buffer | undefined {
  if (config.hashKey !== undefined) return Buffer.from(config.hashKey);
  const file = join(config.dataDir, HASH_KEY_FILE);
  return existsSync(file) ? Buffer.from(kept(file)) : undefined;
}

/**
 * Writes the key whole before it gets its name, so that nobody ever reads half of one; and both are on disk before
 * anything is made with it, which nobody would find without.
 */
function make(file: string): void {
  const draft = `${file}.${process.pid}.${randomBytes(4).toString('hex')}`;
  const descriptor = openSync(draft, 'wx', 0o600);
  try {
    try {
      keepOwner(draft);
      writeSync(descriptor, `${randomBytes(32).toString('base64url')}\n`);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    linkFile(draft, file);
    syncFolder(dirname(file));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(draft);
  }
}
