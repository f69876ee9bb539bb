import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { KEY_STORE_FILE } from '../../adapters/embedded/keyStore/file.js';
import { keyedHash } from '../../domain/keyedHash.js';
import { currentTime } from '../../lib/clock.js';
import { reapplyToKeys, reapplyToLog } from '../../ops/people/erasure/reapplyErasures.js';
import { loadConfig } from '../../service/config.js';
import { isEmbedded } from '../../service/personal.js';
import { findHashKey } from '../../service/keys.js';
import { hasEventLog } from '../dataFolder.js';
import { withLog } from '../engines.js';
import type { Terminal } from '../terminal.js';

/**
 * Repeats erasures that a log or key store has undone which was just put back, before a service opens on it. Without a
 * log, or its HASH_KEY, there are none to repeat. @returns how many
 */
export async function eraseAgain(terminal: Terminal): Promise<number> {
  const config = loadConfig(terminal.env);
  const { dataDir, eventStoreUrl } = config;
  if (eventStoreUrl === undefined && !hasEventLog(dataDir)) return 0;
  // None is made for this.
  if (isEmbedded(config) && !existsSync(join(dataDir, KEY_STORE_FILE))) return 0;
  return withLog(terminal, async (log) => {
    const key = findHashKey(log.config);
    if (key === undefined) return 0;
    // Nothing runs on it yet.
    const nothing = async (): Promise<void> => undefined;
    const afterwards = { settle: nothing, removeRecords: nothing, removeDerived: nothing };
    const now = currentTime();
    const inLog = await reapplyToLog(log, now);
    return inLog + (await reapplyToKeys({ ...log, hash: keyedHash(key), ...afterwards }, now));
  });
}
