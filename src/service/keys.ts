/** An installation's keys: from the settings, else made once in the data folder. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { EngineError } from '../lib/engineError.js';
import { randomBytes } from '../lib/world.js';
import type { Config } from './config.js';
import { makeDataDir } from './dataDir.js';
import { storedText } from '../lib/files/storedText.js';

export const TOKEN_KEY_FILE = 'token.key';
export const HASH_KEY_FILE = 'hash.key';
export const SEAL_KEY_FILE = 'seal.key';
/** Name of the master key's file; all these key files are in DATA_DIR. */
export const MASTER_KEY_FILE = 'master.key';

/** The keys of an installation, all secret. */
export interface Keys {
  /** Keys of access tokens: the first signs, all verify. */
  readonly tokenKeys: readonly string[];
  /**
   * Key of every HMAC in stream names and command ids, and of shortcodes. Losing it loses usernames, phone numbers and
   * links.
   */
  readonly hashKey: Buffer;
  /** Keys of the key store's secrets: the first wraps, all unwrap. Losing them loses all personal data. */
  readonly masterKeys: readonly string[];
  /** Keys that sign the heads of the tree over the log. */
  readonly sealKeys: readonly string[];
}

type KeySettings = Pick<Config, 'dataDir' | 'tokenKeys' | 'hashKey' | 'masterKeys' | 'sealKeys'>;

/**
 * Loads the keys, and generates missing ones in `token.key`, `hash.key`, `master.key` and `seal.key` (mode 0600).
 * Processes that start together share them.
 * @throws EngineError for an invalid key file or folder
 */
export function loadKeys(config: KeySettings): Keys {
  makeDataDir(config.dataDir);
  return {
    tokenKeys: config.tokenKeys ?? [storedKey(join(config.dataDir, TOKEN_KEY_FILE))],
    hashKey: Buffer.from(config.hashKey ?? storedKey(join(config.dataDir, HASH_KEY_FILE))),
    masterKeys: config.masterKeys ?? [storedKey(join(config.dataDir, MASTER_KEY_FILE))],
    sealKeys: config.sealKeys ?? [storedKey(join(config.dataDir, SEAL_KEY_FILE))],
  };
}

/** The seal keys; `undefined`: neither set nor stored. Makes no key. @throws EngineError for an invalid key file */
export const findSealKeys = ({ dataDir, sealKeys }: Pick<Config, 'dataDir' | 'sealKeys'>): Found =>
  sealKeys ?? stored(dataDir, SEAL_KEY_FILE);

/** The master keys; as `findSealKeys`. */
export const findMasterKeys = ({ dataDir, masterKeys }: Pick<Config, 'dataDir' | 'masterKeys'>): Found =>
  masterKeys ?? stored(dataDir, MASTER_KEY_FILE);

/** The hash key; as `findSealKeys`. */
export function findHashKey({ dataDir, hashKey }: Pick<Config, 'dataDir' | 'hashKey'>): Buffer | undefined {
  const text = hashKey ?? stored(dataDir, HASH_KEY_FILE)?.[0];
  return text === undefined ? undefined : Buffer.from(text);
}

type Found = readonly string[] | undefined;

function stored(dataDir: string, name: string): Found {
  const file = join(dataDir, name);
  return existsSync(file) ? [storedKey(file)] : undefined;
}

/** The form of a complete key file: one line of at least 43 printable characters. */
const WHOLE = /^[\x20-\x7e]{43,}$/;

/** The key in the file, which is made where it is missing. */
function storedKey(file: string): string {
  const key = storedText(file, () => randomBytes(32).toString('base64url'));
  if (!WHOLE.test(key))
    throw new EngineError(
      'DATA_DIR',
      `${file} is not a whole key: put back the one this installation was started with; it was left as it is`,
    );
  return key;
}
