/** The data folder: made where there is none. */
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { EngineError } from './adapters/engineError.js';

/** Makes the folder (mode 0700) and those above it. @returns whether it was not there. @throws EngineError naming DATA_DIR where that can't be done */
export function makeDataDir(dataDir: string): boolean {
  try {
    return makeFolder(dataDir);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why = code === 'EEXIST' || code === 'ENOTDIR' ? 'a file stands there' : `it can't be made (${code})`;
    throw new EngineError('DATA_DIR', `${dataDir} is no folder that can be used: ${why}; name another one, or see that this user may write there`, error);
  }
}

/** Step by step: Node's own `recursive` never ends where the folder above is there and takes none, as /proc does. */
function makeFolder(folder: string): boolean {
  try {
    mkdirSync(folder, { mode: 0o700 });
    return true;
  } catch (error) {
    if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true) return false;
    const above = dirname(folder);
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || existsSync(above)) throw error;
    makeFolder(above);
    return makeFolder(folder);
  }
}
